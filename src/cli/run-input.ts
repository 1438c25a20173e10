import type { Command } from 'commander'
import type { JsonValue } from '../base/index.ts'
import type { RunResult, Wait } from '../engine/index.ts'
import type { ThreadKey } from '../events/index.ts'
import { threadName, threadStream } from '../events/index.ts'
import { usage } from './errors.ts'
import { isoTime } from './format.ts'
import { jsonArgument } from './inputs.ts'
import { readInput } from './io.ts'
import { parseThreadName, type Scope, threadJson } from './references.ts'

export interface RunInput extends Scope {
  inputJson?: string
  toolRecovery?: 'never' | 'declared' | 'always'
  toolErrors?: 'throw' | 'return'
  abandon?: true
}

/** Adds the arguments and options of commands that ask for a run. */
export const runArguments = (command: Command): Command =>
  command
    .argument('<thread>', 'app/user/thread (parts percent-encoded), user/thread or thread alone; new for a new thread')
    .argument('[input]', "the user's message; - for standard input. Without one the thread goes on from what it holds")
    .option('--app <application>', "application of a short thread name (default: 'default')")
    .option('--user <user>', "user of a short thread name (default: 'default')")
    .option(
      '--input-json <json>',
      'the message as text or content items of the message format: JSON, @file, or - for standard input',
    )

/** Where a run goes; `thread` is undefined for a new one. */
export function runPlace(text: string, scope: Scope): { application: string; user: string; thread: string | undefined } {
  if (text === 'new') return { application: scope.app ?? 'default', user: scope.user ?? 'default', thread: undefined }
  return parseThreadName(text, scope)
}

/** The user's message, if one was given. @throws usage error */
export async function inputOf(input: string | undefined, o: RunInput): Promise<JsonValue | undefined> {
  if (input !== undefined && o.inputJson !== undefined) throw usage('Give either [input] or --input-json.')
  if (o.inputJson !== undefined) return jsonArgument(o.inputJson, '--input-json')
  return input === '-' ? readInput() : input
}

/** A thread in the result of a run. */
export const keyJson = (key: ThreadKey) => threadJson(threadStream(key), key)

/** How a run ended, as JSON. */
export const resultJson = (result: RunResult) => ({
  status: result.status,
  thread: keyJson(result.thread),
  run_id: result.runId,
  invocation_id: result.invocationId,
  version: result.version,
  output: result.output,
  failure: result.failure && { ...result.failure },
  waits: result.waits.map(waitJson),
})

const waitJson = (wait: Wait) => ({
  id: wait.id,
  kind: wait.kind,
  provider: wait.provider,
  tool: wait.tool,
  arguments: wait.arguments,
  status: wait.status,
  schema_id: wait.schemaId,
  external_id: wait.externalId,
  digest: wait.digest,
  deadline: wait.deadline === null ? null : isoTime(wait.deadline),
  created_at: isoTime(wait.createdAt),
})

/** How a run ended, for standard error: what to do next included. */
export function resultLines({ status, thread, failure, waits, version }: RunResult): string[] {
  const lines = [
    `${status}: ${threadName(thread)} at version ${version}${failure ? `, ${failure.code}: ${failure.message}` : ''}`,
  ]
  for (const wait of waits) lines.push(`waits for ${wait.kind} of ${wait.tool} (${wait.provider}): threadlog wait ${wait.id}`)
  return lines
}
