import { type JsonObject, reject } from '../base/index.ts'
import type { LogBackend } from '../log/index.ts'
import { findWait, foldStream, type Wait, type WaitRow } from '../projections/index.ts'
import { isoTime } from './format.ts'
import { type PayloadForm, payloadJson, payloadText } from './payloads.ts'
import { findWaitRow, refText, threadJson } from './references.ts'
import { readUpTo } from './versions.ts'
import { visible } from './visible.ts'

/** A wait with everything its thread says about it. */
export interface WaitView {
  readonly row: WaitRow
  readonly wait: Wait
}

/** Finds a wait by id or prefix, and folds its thread. @throws ThreadlogError `wait_unknown`, `ambiguous_prefix` */
export async function findWaitView(backend: LogBackend, id: string): Promise<WaitView> {
  const row = findWaitRow(backend.tables, id)
  const { state, quarantine } = foldStream(await readUpTo(backend, row.stream))
  const wait = findWait(state, row.continuation_id)
  if (wait) return { row, wait }
  throw reject('wait_unreadable', 'The wait stands in the index, but not in what can be read of its thread.', {
    path: 'wait',
    hint: `threadlog verify ${row.stream}`,
    details: { stream: row.stream, quarantined_at: quarantine?.version ?? null },
  })
}

const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms))

/** A wait in a list. */
export const waitRowJson = (row: WaitRow): JsonObject => ({
  id: row.continuation_id,
  thread: threadJson(row.stream, row),
  kind: row.kind,
  provider: row.provider,
  capability: row.capability,
  tool: row.tool_name,
  call_id: row.call_id,
  status: row.status,
  ready: row.ready === 1,
  revision: row.revision,
  schema_id: row.schema_id,
  external_id: row.external_id,
  digest: row.proposal_digest,
  run_id: row.run_id,
  invocation_id: row.invocation_id,
  deadline: timeOrNull(row.deadline),
  created_at: isoTime(row.created_at),
  updated_at: isoTime(row.updated_at),
  result_id: row.result_id,
  result_digest: row.digest,
})

/** A wait on its own: also what was asked, and what was answered. */
export function waitJson({ row, wait }: WaitView, form: PayloadForm): JsonObject {
  const { outcome } = wait
  const answered = outcome && {
    result_id: outcome.resultId,
    digest: outcome.digest,
    source: outcome.source,
    value: outcome.value && payloadJson(outcome.value, form),
    failure: outcome.failure,
  }
  return { ...waitRowJson(row), arguments: payloadJson(wait.item.arguments, form), outcome: answered ?? null }
}

/** The wait as lines `name  value`: what an approver has to see before deciding. */
export function waitLines({ row, wait }: WaitView, form: PayloadForm, time: (ms: number) => string): string[] {
  const { item, outcome } = wait
  const facts: [string, string][] = [
    ['wait', wait.id],
    ['thread', refText({ stream: row.stream, key: row })],
    ['kind', `${item.kind} (${wait.provider})`],
    ['status', wait.status],
    ['tool', item.tool_name],
    ['arguments', payloadText(item.arguments, form)],
    ['digest', item.proposal_digest],
    ['schema', wait.schemaId],
    ['external id', wait.externalId],
    ['since', time(wait.createdAt)],
    ['due', item.deadline === null ? '' : time(item.deadline)],
    ['answered', outcome ? time(wait.updatedAt) : ''],
    ['by result', outcome?.resultId ?? ''],
    ['value', outcome?.value ? payloadText(outcome.value, form) : ''],
    ['failure', outcome?.failure?.code ?? ''],
  ]
  return facts.filter(([, value]) => value !== '').map(([name, value]) => `${name.padEnd(12)}${visible(value)}`)
}
