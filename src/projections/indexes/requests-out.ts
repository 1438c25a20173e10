import { applicationSource, cloudEvent, type StreamKey } from '../../events/index.ts'
import type { Projector, TopicRecord } from '../../log/index.ts'
import { idempotencyKey } from '../identity.ts'
import { SNAPSHOTS } from '../snapshot-table.ts'
import { findWait, type ThreadState, type Wait } from '../state.ts'
import { REQUEST, REQUEST_CANCELLED, type RequestRecord } from './edge-records.ts'
import { Folds, type Step } from './steps.ts'
import { continuationId } from './waits-index.ts'

/**
 * Publishes to `requests`: one record when a wait is armed and still pending, and the same record with `cancelled: true` when an armed
 * wait ends without being claimed (cancelled, expired, abandoned).
 */
export function requestsOut(folds: Folds = new Folds()): Projector {
  return {
    name: 'requests',
    version: 1,
    schema: SNAPSHOTS,
    drop: '',
    publishes: true,
    apply(tx, events) {
      for (const { stream, steps } of folds.steps(tx, events))
        for (const step of steps) {
          const request = requestOf(stream, step)
          if (request) tx.publish('requests', topicRecord(request, step.event?.time ?? 0))
        }
    },
  }
}

const ENDS = new Set(['continuation.cancelled/1', 'continuation.expired/1', 'continuation.abandoned/1'])

/** What one event asks of, or takes back from, a provider. */
export function requestOf(stream: StreamKey, { event, after: { state } }: Step): RequestRecord | undefined {
  const id = event && continuationId(event)
  const wait = id === undefined ? undefined : findWait(state, id)
  // A foreign host submits its own jobs.
  if (!event || !wait?.ready || state.identity?.kind !== 'harness') return undefined
  const ends = ENDS.has(event.type)
  if (!ends && (event.type !== 'continuation.armed/1' || wait.status !== 'pending')) return undefined
  try {
    return { ...record(stream, state, wait, event.version), ...(ends && { cancelled: true }) }
  } catch {
    // Arguments that are not JSON: better no request than another one. The wait stands in the index.
    return undefined
  }
}

function record(stream: StreamKey, state: ThreadState, wait: Wait, version: number): RequestRecord {
  const { item } = wait
  return {
    application_id: state.identity?.application ?? '',
    provider: wait.provider,
    capability: wait.capability,
    continuation_id: wait.id,
    external_id: wait.externalId,
    schema_id: wait.schemaId,
    tool: item.tool,
    ...(item.arguments.kept ? { arguments: null, arguments_ref: item.arguments.kept.ref } : { arguments: item.arguments.value }),
    idempotency_key:
      state.batch?.calls.get(item.model_call_id)?.dispatch?.idempotencyKey ??
      idempotencyKey(stream, state.batch?.origin ?? '', item.model_call_id),
    proposal_digest: item.proposal_digest,
    deadline: item.deadline,
    stream,
    version,
  }
}

/** Keyed by stream: a request and its cancellation stay in order, in the partition of their thread. */
const topicRecord = (request: RequestRecord, time: number): TopicRecord => ({
  key: request.stream,
  value: new TextEncoder().encode(JSON.stringify(request)),
  headers: cloudEvent({
    // Taking back is an event of its own, so its id differs.
    id: request.cancelled ? `${request.continuation_id}:cancelled` : request.continuation_id,
    source: applicationSource(request.application_id),
    type: request.cancelled ? REQUEST_CANCELLED : REQUEST,
    subject: request.continuation_id,
    time,
  }),
})
