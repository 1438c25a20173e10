import { ContinuationRecord } from '../../../src/continuations/index.ts'
import type { EventType } from '../../../src/events/index.ts'
import { openThreadlog } from '../../../src/index.ts'
import { openLog } from '../../../src/log/index.ts'
import { gatedLog } from '../gated-log.ts'
import { options, serve } from './child.ts'

// A foreign host as its own process that stands still once an event of one type is in the log: `host.ts '{"file": …, "after": …}'`.

export type HostScope = { applicationId: string; userId: string; sessionId: string; runId: string }

const o = options<{ file: string; after: EventType }>()
const gate = gatedLog(await openLog(`sqlite:${o.file}`), o.after, { after: true })
const store = (await openThreadlog({ log: gate.log })).continuationStore()
const SCHEMA = 'result/v1'

serve({
  /** Answers once such an event is in the log; whoever wrote it does not hear of it. */
  reached: () => gate.reached,
  suspend: async ({ scope, continuationId, externalId }: { scope: HostScope; continuationId: string; externalId: string }) => {
    const record = new ContinuationRecord({ ...scope, continuationId, provider: 'bank', capability: 'pay', schemaId: SCHEMA })
    await store.suspendContinuation({ record, externalId })
    await store.putCheckpoint({ scope, checkpointId: continuationId, payload: { at: 'pay' } })
    const expectedRevision = 0
    return (await store.armContinuation({ scope, provider: 'bank', continuationId, expectedRevision })).toJSON()
  },
  complete: async ({ scope, externalId, result }: { scope: HostScope; externalId: string; result: string }) =>
    (await store.resolveContinuation({ scope, provider: 'bank', externalId, schemaId: SCHEMA, result })).toJSON(),
})
