import { isJsonObject, type JsonValue, jsonDigest, reject, type ThreadlogError } from '../base/index.ts'
import { type ThreadKey, threadStream } from '../events/index.ts'
import { type Agent, checkToolRecovery, type DeferredToolResume, preflight, runError, usageMissing } from '../harness/index.ts'
import { HarnessState } from '../messages/index.ts'
import {
  harnessState,
  readUsage,
  type ThreadState,
  type ThreadStore,
  threadStatus,
  USAGE_NAMESPACE,
} from '../projections/index.ts'
import type { RunOptions } from './types.ts'

/** A run whose options have been checked. */
export interface PreparedRun {
  readonly agent: Agent
  readonly options: RunOptions
  readonly key: ThreadKey
  readonly stream: string
  readonly previous: HarnessState | undefined
  /** What is left of the caller's answers; undefined when there is nothing to do for them. */
  readonly resume: DeferredToolResume | undefined
}

/**
 * Checks what a caller asks for, before anything runs, in the order of state spec §2.3.
 * @throws ThreadlogError `option_invalid`; of kind `RunError`: `input_source_conflict`, `run_bindings_invalid`, `deferred_*`; `state_invalid`;
 *   of kind `StateError`: `usage_state_missing`
 */
export function prepareRun(deps: { store: ThreadStore; application: string }, agent: Agent, o: RunOptions): PreparedRun {
  if (o.toolRecovery !== undefined) checkToolRecovery(o.toolRecovery)
  if (!(agent?.tools instanceof Map))
    throw reject('agent_invalid', 'This is no agent.', { path: 'agent', expected: 'what `defineAgent` returns' })
  checkKinds(o)
  checkLimits(o.usageLimits)
  if (o.input !== undefined && o.inputFactory !== undefined)
    throw runError('input_source_conflict', 'The input has two sources.', {
      path: 'input',
      expected: '`input` or `inputFactory`',
    })
  if (o.bindings !== undefined && !isJsonObject(o.bindings))
    throw runError('run_bindings_invalid', 'The bindings are no object.', { path: 'bindings' })
  const previous = previousState(o.previousState)
  const resume = o.deferredResume === undefined ? undefined : preflight(previous, o.deferredResume)
  if (o.resumeUsage && previous && !tellsUsage(previous)) throw usageMissing()
  if (previous && o.thread !== undefined && o.thread !== previous.threadId)
    throw reject('option_invalid', 'The previous state is of another thread.', { path: 'thread', expected: previous.threadId })
  const thread = previous?.threadId ?? o.thread ?? deps.store.ids.thread()
  const key = { application: deps.application, user: o.user ?? 'default', thread }
  return { agent, options: o, key, stream: threadStream(key), previous, resume }
}

function checkKinds({ signal, inputFactory, bindings }: RunOptions): void {
  const wrong = (path: string, expected: string) => reject('option_invalid', 'The option is of another kind.', { path, expected })
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw wrong('signal', 'an AbortSignal')
  if (inputFactory !== undefined && typeof inputFactory !== 'function') throw wrong('inputFactory', 'a function')
  const policy = isJsonObject(bindings) ? bindings.policy : undefined
  if (policy !== undefined && typeof policy !== 'function') throw wrong('bindings.policy', 'a function')
}

const LIMITS = ['requests', 'toolCalls', 'inputTokens', 'outputTokens', 'totalTokens']

function checkLimits(limits: unknown): void {
  if (limits === undefined) return
  const wrong = (path: string, expected: string) => reject('option_invalid', 'The limit is not usable.', { path, expected })
  if (!isJsonObject(limits)) throw wrong('usageLimits', `an object of ${LIMITS.join(', ')}`)
  for (const [name, limit] of Object.entries(limits)) {
    if (!LIMITS.includes(name)) throw wrong(`usageLimits.${name}`, LIMITS.join(', '))
    if (limit !== undefined && !(Number.isSafeInteger(limit) && (limit as number) >= 0))
      throw wrong(`usageLimits.${name}`, 'a whole number from 0')
  }
}

const tellsUsage = (state: HarnessState): boolean => readUsage(state.entries[USAGE_NAMESPACE]) !== undefined

function previousState(given: RunOptions['previousState']): HarnessState | undefined {
  if (given === undefined || given === null) return undefined
  return given instanceof HarnessState ? given : HarnessState.parse(given)
}

/**
 * Makes sure that the thread is what the previous state says (design §8): its messages, its capabilities, its references.
 * @throws ThreadlogError `thread_moved`
 */
export function checkHead(state: ThreadState, previous: HarnessState): void {
  if (continuationDigest(harnessState(state)) !== continuationDigest(previous)) throw moved(state)
}

const moved = (state: ThreadState): ThreadlogError =>
  reject('thread_moved', 'The thread has gone on since that state was exported.', {
    path: 'previousState',
    expected: `the state at version ${state.version}`,
    details: { version: state.version, status: threadStatus(state) },
    hint: 'Go on from its present state, or fork the one you have: `HarnessState.fork()`, `thread.fork({ at })`.',
  })

/** What two states must share for a run to go on from one as from the other: all but the environments. */
function continuationDigest(state: HarnessState): string {
  const { environment_states: _, refs: __, schema_version: ___, ...rest } = state.toJSON()
  return jsonDigest(rest as JsonValue)
}
