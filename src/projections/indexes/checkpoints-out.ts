import { sha256Hex } from '../../base/index.ts'
import { applicationSource, cloudEvent, type EventType, eventId, type LogEvent, threadName } from '../../events/index.ts'
import type { Projector, TopicRecord } from '../../log/index.ts'
import { SNAPSHOTS } from '../snapshot-table.ts'
import type { ThreadState } from '../state.ts'
import { stateDigest, statePieces } from '../state-text.ts'
import { CHECKPOINT, type CheckpointRecord, type CheckpointStatus, INLINE_STATE } from './edge-records.ts'
import { Folds, type Step } from './steps.ts'
import { ENDS, pendingWaits } from './thread-row.ts'

/**
 * Publishes to `checkpoints` where a run came to a safe boundary: suspended, completed, failed or cancelled. One commit gives at most
 * one, the last boundary in it. A thread in quarantine gives none until it is repaired.
 */
export function checkpointsOut(folds: Folds = new Folds()): Projector {
  return {
    name: 'checkpoints',
    version: 1,
    schema: SNAPSHOTS,
    drop: '',
    publishes: true,
    apply(tx, events) {
      for (const { steps } of folds.steps(tx, events))
        for (const boundary of boundaries(steps)) {
          const record = checkpointRecord(boundary)
          if (record) tx.publish('checkpoints', record)
        }
    },
  }
}

const STATUS: Partial<Record<EventType, CheckpointStatus>> = { 'run.suspended/1': 'suspended', ...ENDS }

/** An event that ends a run, and the step the checkpoint shows: behind the waits that the same commit opened or closed. */
export interface Boundary {
  readonly event: LogEvent<'run.suspended/1' | 'run.completed/1' | 'run.failed/1' | 'run.cancelled/1'>
  readonly step: Step
}

/** The last boundary of each commit. */
export function boundaries(steps: readonly Step[]): Boundary[] {
  const found = new Map<string, Boundary>()
  for (const [i, { event }] of steps.entries()) {
    if (!event || STATUS[event.type] === undefined) continue
    let last = i
    while (isWaitOf(event, steps[last + 1]?.event)) last++
    found.set(event.commit.id, { event: event as Boundary['event'], step: steps[last] as Step })
  }
  return [...found.values()]
}

const isWaitOf = (boundary: LogEvent, next: LogEvent | undefined): boolean =>
  next !== undefined && next.commit.id === boundary.commit.id && next.type.startsWith('continuation.')

/** The checkpoint at a boundary; undefined for a thread whose opening is unknown. */
export function checkpointRecord({ event, step }: Boundary): TopicRecord | undefined {
  const { state } = step.after
  const { identity } = state
  const { hash, version, position } = step.record
  if (!identity) return undefined
  const first: Omit<CheckpointRecord, keyof Rest | 'state_digest' | 'state'> = {
    application_id: identity.application,
    user_id: identity.user,
    thread_id: identity.thread,
    stream: identity.stream,
    version,
    hash,
    run_id: event.data.run_id,
    invocation_id: invocationOf(state, event.data.run_id),
    status: STATUS[event.type] as CheckpointStatus,
    time: event.time,
  }
  const rest: Rest = {
    position: { partition: position.partition, offset: String(position.offset) },
    waits: pendingWaits(state),
  }
  const value = withState(first, rest, state)
  const headers = cloudEvent({
    id: eventId(event),
    source: applicationSource(identity.application),
    type: CHECKPOINT,
    subject: threadName(identity),
    time: event.time,
  })
  return value && { key: identity.stream, value, headers }
}

type Rest = Pick<CheckpointRecord, 'position' | 'waits'>

/** The record as JSON, the state last: its text is put down once, and its digest taken from there. */
function withState(first: object, rest: Rest, state: ThreadState): Uint8Array | undefined {
  const before = `${JSON.stringify(first).slice(0, -1)},"state_digest":"`
  const behind = `",${JSON.stringify(rest).slice(1, -1)},"state":`
  try {
    const pieces = statePieces(state, INLINE_STATE)
    if (!pieces) return Buffer.from(`${before}${stateDigest(state)}${behind}null}`)
    const head = Buffer.from(`${before}${NO_DIGEST}${behind}`)
    const value = Buffer.concat([head, ...pieces, END])
    value.write(sha256Hex(value.subarray(head.byteLength, -1)), Buffer.byteLength(before), 'latin1')
    return value
  } catch {
    // Messages no version of the wire form can hold: the thread has no checkpoint, and loading it says why.
    return undefined
  }
}

const NO_DIGEST = '0'.repeat(64)
const END = Buffer.from('}')

const invocationOf = (state: ThreadState, runId: string): string =>
  state.runs.get(runId)?.invocationId ?? (state.run?.runId === runId ? state.run.invocationId : runId)
