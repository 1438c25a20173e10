import { channel } from 'node:diagnostics_channel'
import { findWait, type ThreadState } from '../projections/index.ts'

/** What is told of each run that goes on from answers. No payload, and no id that an outsider chose. */
export interface ResumedMessage {
  readonly application: string
  readonly agent: string
  readonly runId: string
  /** How long the last answer it needed had been in the log, in milliseconds: a backlog that nobody sees otherwise. */
  readonly resultAgeMs: number
  /** Answers it goes on from. */
  readonly waits: number
}

/** `node:diagnostics_channel` for metrics and alerts: one {@link ResumedMessage} for each run resumed by this process, once that is in the log. */
export const RESUMED_CHANNEL = 'threadlog.resumed'
const resumed = channel(RESUMED_CHANNEL)

/** What to tell if a suspended run goes on from this state at `now`. */
export function resumption(state: ThreadState, runId: string, now: number): ResumedMessage | undefined {
  const { run, identity } = state
  if (!resumed.hasSubscribers || run?.status !== 'suspended' || !identity) return undefined
  const waits = run.waitIds.flatMap((id) => findWait(state, id) ?? [])
  const last = Math.max(...waits.map(({ updatedAt }) => updatedAt))
  const resultAgeMs = Math.max(0, now - last)
  return { application: identity.application, agent: run.agent.name, runId, resultAgeMs, waits: waits.length }
}

/** A subscriber that throws is told by Node as an uncaught exception of its own, not here. */
export function tellResumed(message: ResumedMessage | undefined): void {
  if (message) resumed.publish(message)
}
