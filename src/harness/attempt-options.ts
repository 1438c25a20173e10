import type { Actor, Owner, StreamKey } from '../events/index.ts'
import type { Delta } from '../models/index.ts'
import type { RunEnd, Tail, ThreadStore } from '../projections/index.ts'
import type { Agent, Policy } from './agent.ts'
import type { StateStore } from './state-store.ts'

export interface AttemptOptions {
  store: ThreadStore
  tail: Tail
  agent: Agent
  owner: Owner
  actor: Actor
  stream: StreamKey
  runId: string
  attempt: number
  /** What the caller bound to this run; never in the log. */
  bindings?: RunBindings | undefined
  /** Aborting stops the attempt after what is in flight has settled; the run stays for whoever recovers it. */
  signal?: AbortSignal
  onDelta?: (delta: Delta) => void
  /** Called when the fate of the first commit is known, whatever it is. */
  onBegun?: () => void
  /** Given: once the run has begun, a log that is locked or full is waited for, and this is told. Absent: it ends the attempt. */
  onWaiting?: (error: unknown) => void
}

/** Live things of one run. */
export interface RunBindings {
  /** What tools get as `deps`. */
  deps?: unknown
  /**
   * For whom the run acts: shown to policies and reviewers. Names in its `permissions`, if it has a list of them, are kept with what the run waits for: whoever
   * resumes it without saying for whom gets a principal with these, and a new `id`.
   */
  principal?: unknown
  /** Asked before each call of a tool. */
  policy?: Policy
  /** False: nobody will answer; tools that always wait are not offered, others are denied. Default true. */
  deferredToolsSupported?: boolean
  /** Where large content of states is kept. */
  stateStore?: StateStore
}

/** How an attempt ended: with its run (`thrown`: what a tool or a hook threw that ended it), without having begun, overtaken by another attempt, or stopped with this process. */
export type AttemptEnd =
  | { is: 'ended'; end: RunEnd; thrown?: unknown }
  | { is: 'not-taken' }
  | { is: 'superseded' }
  | { is: 'stopped' }
