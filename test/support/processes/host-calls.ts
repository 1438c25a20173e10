import { ContinuationRecord, type LogContinuationStore, resumeContinuation } from '../../../src/continuations/index.ts'
import type { EventType, LogEvent } from '../../../src/events/index.ts'
import { openThreadlog } from '../../../src/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { gatedLog } from '../gated-log.ts'

// What a foreign host does when it is asked. It stands still at one event.

export type HostScope = { applicationId: string; userId: string; sessionId: string; runId: string }

/** Where a host stands still: once such an event is in the log, or `before` it is sent. */
export interface Gate {
  type: EventType
  before?: boolean
  /** Of the events that say until when a claim is for: only the one that acknowledges. */
  acknowledged?: boolean
}

export const SCHEMA = 'result/v1'
const PROVIDER = 'bank'

/** Ways to write that only the holder of a claim has, by name. */
const writes: Record<string, (store: LogContinuationStore, scope: HostScope, lease: Lease) => Promise<unknown>> = {
  acknowledge: (store, scope, lease) => store.acknowledgeContinuation({ scope, ...lease }),
  renew: (store, scope, lease) => store.renewContinuation({ scope, ...lease, leaseMs: 60_000 }),
  release: (store, scope, lease) => store.releaseContinuation({ scope, ...lease }),
  checkpoint: (store, scope, lease) => store.putCheckpoint({ scope, checkpointId: 'late', payload: 'late', lease }),
  complete: (store, scope, lease) => store.transitionRun({ scope, expectedStatus: 'running', status: 'completed', lease }),
  suspend: (store, scope, lease) =>
    store.suspendContinuation({ record: recordOf(scope, `late-${lease.fence}`), externalId: `late-${lease.fence}`, lease }),
  'checkpoint without its claim': (store, scope) => store.putCheckpoint({ scope, checkpointId: 'late', payload: 'late' }),
  'end without its claim': (store, scope) => store.transitionRun({ scope, expectedStatus: 'running', status: 'failed' }),
}

export const WRITES = Object.keys(writes)

interface Lease {
  continuationId: string
  fence: number
}

const recordOf = (scope: HostScope, continuationId: string) =>
  new ContinuationRecord({ ...scope, continuationId, provider: PROVIDER, capability: 'pay', schemaId: SCHEMA })

/** As a sweep reads it: after all that others have done to it. */
async function waiting(store: LogContinuationStore, applicationId: string, id: string) {
  for await (const { wait } of store.waiting(applicationId)) if (wait.record.continuationId === id) return wait
  throw new Error('There is no such wait.')
}

export async function hostCalls(backend: LogBackend, { type, before = false, acknowledged = false }: Gate) {
  const isMeant = (event: LogEvent | { type: string; data: unknown }) =>
    event.type === type && (!acknowledged || (event.data as { until?: number | null }).until === null)
  const gate = gatedLog(backend, type, { after: !before, isMeant })
  const store = (await openThreadlog({ log: gate.log })).continuationStore()
  return {
    /** Answers once such an event is in the log; whoever wrote it does not hear of it. */
    reached: () => gate.reached,
    open: () => gate.open(),
    suspend: async ({ scope, continuationId, externalId }: { scope: HostScope; continuationId: string; externalId: string }) => {
      await store.suspendContinuation({ record: recordOf(scope, continuationId), externalId })
      await store.putCheckpoint({ scope, checkpointId: continuationId, payload: { at: 'pay' } })
      return (await store.armContinuation({ scope, provider: PROVIDER, continuationId, expectedRevision: 0 })).toJSON()
    },
    complete: async ({ scope, externalId, result }: { scope: HostScope; externalId: string; result: string }) =>
      (await store.resolveContinuation({ scope, provider: PROVIDER, externalId, schemaId: SCHEMA, result })).toJSON(),
    /** Goes on with an outcome for a time: a checkpoint, then the acknowledgement. */
    resume: async ({ scope, continuationId, leaseMs }: { scope: HostScope; continuationId: string; leaseMs: number }) => {
      const wait = await waiting(store, scope.applicationId, continuationId)
      const resume = ({ lease }: { lease: Lease }) =>
        store.putCheckpoint({ scope, checkpointId: 'resumed', payload: { fence: lease.fence }, lease })
      return resumeContinuation(store, wait, { leaseMs, canResume: () => true, resume })
    },
    /** Why each thing a holder may write was refused; `written` where it was not. */
    late: async ({ scope, lease }: { scope: HostScope; lease: Lease }) => {
      const answers: Record<string, string> = {}
      for (const [name, write] of Object.entries(writes))
        answers[name] = await write(store, scope, lease).then(
          () => 'written',
          (error: { reason?: string; code?: string }) => error.reason ?? error.code ?? String(error),
        )
      return answers
    },
  }
}
