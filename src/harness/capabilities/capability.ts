import { z } from 'zod'
import { checkOptions, type JsonValue, reject } from '../../base/index.ts'
import type { Message, ResponseMessage } from '../../messages/index.ts'
import type { Tool } from '../tool.ts'
import { RESERVED } from './states.ts'

/** The namespace of a capability: a value of the declared version and schema, replaced as a whole (state spec §6). */
export interface CapabilityState<T = unknown> {
  /** Null before anything was written. @throws ThreadlogError `capability_state_version_unsupported`, `capability_state_invalid` */
  read(): T | null
  /** Enters the log with what the run commits next. @throws ThreadlogError `capability_state_invalid`, `capability_state_too_large`, `json_invalid` */
  write(value: T): void
  delete(): void
}

/** What a hook is given beside its subject. */
export interface HookContext<T = unknown> {
  readonly state: CapabilityState<T>
  readonly runId: string
  readonly threadId: string
  /** What the caller bound to this run; never in the log. */
  readonly deps: unknown
  /** Aborts on cancel, and when this attempt is no longer the current one. */
  readonly signal: AbortSignal
}

/** A call that this process is about to run, or has run. */
export interface HookCall {
  readonly tool: string
  readonly callId: string
  readonly args: JsonValue
}

/** What became of it: `content` is what the model reads. */
export interface HookOutcome {
  readonly settlement: 'returned' | 'failed' | 'denied' | 'retried'
  readonly content: JsonValue
}

/**
 * What runs around the requests and calls of a run. Those before may wait. Those after may not, for what was paid for or done is recorded
 * before anything else is waited for (R9, R17): they are called in one piece with its recording. A hook that throws ends the run as failed
 * with `capability_failed`; what it came after stays recorded. Hooks are not replayed.
 */
export interface CapabilityHooks<T = unknown> {
  /**
   * Before each request to the model, one that is sent again included. A list in answer takes the place of the history, in the log too
   * (`history.revised`, why `compaction`): messages as given here or new ones, the newest request last, each call answered once.
   */
  readonly beforeModel?: (
    messages: readonly Message[],
    context: HookContext<T>,
  ) => readonly Message[] | undefined | Promise<readonly Message[] | undefined>
  /** After a response of the model came whole. */
  readonly afterModel?: (response: ResponseMessage, context: HookContext<T>) => void
  /** Before a call that was dispatched begins, behind every policy. */
  readonly beforeTool?: (call: HookCall, context: HookContext<T>) => void | Promise<void>
  /** After it ended with an outcome; not after one that waits for somebody else, never began, or threw. */
  readonly afterTool?: (call: HookCall, outcome: HookOutcome, context: HookContext<T>) => void
}

/** A part that agents can share: instructions, tools, hooks and a namespace of state. */
export interface Capability extends CapabilityHooks {
  /** Also the id of its namespace. */
  readonly name: string
  readonly instructions: readonly string[]
  readonly tools: readonly Tool[]
  readonly state?: { readonly version: string; readonly schema: z.ZodType }
}

/**
 * Declares a capability. Whoever changes what it tells the model raises the revision of the agents that have it.
 * @param o.instructions stand behind the agent's own system prompt
 * @param o.tools are offered beside the agent's own; their bodies reach the state by `capabilities.read` and `write`
 * @param o.state version and zod type of its namespace; a namespace of another version is refused, not migrated
 * @throws ThreadlogError `capability_invalid`
 */
export function defineCapability<S extends z.ZodType = z.ZodUnknown>(
  o: {
    name: string
    instructions?: string | readonly string[]
    tools?: readonly Tool[]
    state?: { version: string; schema: S }
  } & CapabilityHooks<z.output<S>>,
): Capability {
  checkOptions(o)
  const { name, instructions, tools = [], state, beforeModel, afterModel, beforeTool, afterTool } = o
  if (typeof name !== 'string' || name.trim() === '' || name.startsWith(RESERVED))
    throw wrong('name', 'a non-blank string that does not begin with `threadlog.`')
  const hooks = { beforeModel, afterModel, beforeTool, afterTool }
  const given = Object.entries(hooks).filter(([, hook]) => hook !== undefined)
  for (const [hook, value] of given) if (typeof value !== 'function') throw wrong(hook, 'a function')
  if (state !== undefined) {
    if (typeof state?.version !== 'string' || state.version.trim() === '') throw wrong('state.version', 'a non-blank string')
    if (!(state.schema instanceof z.ZodType)) throw wrong('state.schema', 'a zod type')
  }
  const texts = instructions === undefined ? [] : typeof instructions === 'string' ? [instructions] : [...instructions]
  return Object.freeze({
    name,
    instructions: Object.freeze(texts),
    tools: Object.freeze([...tools]),
    ...(state === undefined ? {} : { state: Object.freeze({ version: state.version, schema: state.schema }) }),
    ...(Object.fromEntries(given) as CapabilityHooks),
  })
}

const wrong = (path: string, expected: string) =>
  reject('capability_invalid', 'The capability is not usable.', { path, expected })

/** @throws ThreadlogError `capability_duplicate` */
export function checkDistinct(capabilities: readonly Capability[]): void {
  const names = new Set<string>()
  for (const { name } of capabilities) {
    if (names.has(name)) throw reject('capability_duplicate', `Two capabilities are called ${name}.`, { path: 'capabilities' })
    names.add(name)
  }
}
