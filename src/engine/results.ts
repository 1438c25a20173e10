import { frozenCopy } from '../base/index.ts'
import type { ThreadKey } from '../events/index.ts'
import { type Wait as FoldedWait, findWait, type RunEnd, type ThreadState } from '../projections/index.ts'
import type { RunResult, Wait } from './types.ts'

/** The public view of a wait. */
export const publicWait = (key: ThreadKey, wait: FoldedWait): Wait => ({
  id: wait.id,
  thread: key,
  kind: wait.item.kind as Wait['kind'],
  provider: wait.provider,
  tool: wait.item.tool_name,
  arguments: structuredClone(wait.item.arguments.value),
  status: wait.status,
  schemaId: wait.schemaId,
  externalId: wait.externalId,
  digest: wait.item.proposal_digest,
  deadline: wait.item.deadline,
  createdAt: wait.createdAt,
})

export const keyOf = (state: ThreadState): ThreadKey => {
  const { application, user, thread } = state.identity as ThreadKey
  return { application, user, thread }
}

/** The result of a run that ended, as its caller sees it. */
export function runResult(state: ThreadState, end: RunEnd): RunResult {
  const waitIds = end.status === 'suspended' && state.run?.runId === end.runId ? state.run.waitIds : []
  const key = keyOf(state)
  return {
    status: end.status,
    thread: key,
    runId: end.runId,
    invocationId: end.invocationId,
    version: end.version,
    output: frozenCopy(end.output?.value ?? null),
    failure: end.failure,
    waits: waitIds.flatMap((id) => findWait(state, id) ?? []).map((wait) => publicWait(key, wait)),
  }
}
