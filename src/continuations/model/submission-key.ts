import { sha256Hex } from '../../base/index.ts'
import { invalidArgument } from './arguments.ts'
import type { ResumeArtifact } from './resume.ts'
import type { RunScopeFields } from './scope.ts'

/**
 * The key under which one native tool call submits its external job: the same call gives the same key in every replay, so a provider that
 * keeps keys can hand back the job it has (continuation spec §7.4). Two jobs of one capability inside one call need different capabilities.
 * @throws ThreadlogError `invalid_argument` for a zero byte, which would let one call take another's key
 */
export function submissionKey(o: RunScopeFields & { provider: string; capability: string; resume: ResumeArtifact }): string {
  const { applicationId, userId, sessionId, runId, provider, capability, resume } = o
  const own = { applicationId, userId, sessionId, runId, provider, capability }
  for (const [path, value] of Object.entries(own))
    if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed())
      throw invalidArgument(path, 'a well-formed string without a zero byte')
  const texts = [...Object.values(own), resume.framework, resume.nativeInvocationId, resume.toolCallId]
  return `harnest-submission-v1.${sha256Hex(texts.join('\0'))}`
}
