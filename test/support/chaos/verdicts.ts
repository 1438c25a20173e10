import { type Receipt, sourceText } from '../../../src/continuations/index.ts'
import type { LogEvent } from '../../../src/events/index.ts'
import type { Wait } from '../../../src/projections/index.ts'
import type { Submission } from './submissions.ts'
import { placeText } from './watcher.ts'

/** A record of `results`. */
export interface Row {
  key: string
  partition: number
  offset: number
}

export interface Judging {
  rows: readonly Row[]
  receipts: readonly Receipt[]
  sent: readonly Submission[]
  waits: ReadonlyMap<string, Wait>
  events: readonly LogEvent[]
  /** The producer makes one record of each insert. */
  once: boolean
}

type Violate = (what: string) => void

/**
 * Conservation and verdicts. Every record has one final receipt, every caller's answer too; each is the one that follows from how the
 * wait ended, which the log knows. Answers the receipts by verdict.
 */
export function checkVerdicts(j: Judging, violate: Violate): Record<string, number> {
  const byPlace = new Map<string, Receipt[]>()
  const byCommand = new Map<string, Receipt[]>()
  for (const receipt of j.receipts) {
    const { source } = receipt
    if ('offset' in source) push(byPlace, placeText(source), receipt)
    else push(byCommand, source.command_id, receipt)
  }
  const rowsByKey = Map.groupBy(j.rows, ({ key }) => key)
  const counts: Record<string, number> = {}
  const judge = (submission: Submission, resultId: string, verdict: string, where: string) => {
    counts[verdict] = (counts[verdict] ?? 0) + 1
    const possible = expected(submission, resultId, j.waits)
    if (!possible.includes(verdict)) violate(`${where}: ${verdict} where only ${possible.join(' or ')} is possible`)
  }
  for (const submission of j.sent) {
    const { key, way, answer } = submission
    const rows = rowsByKey.get(key) ?? []
    const isTopic = way === 'sql' || way === 'topic'
    if (isTopic ? rows.length === 0 : rows.length > 0) violate(`${key} by ${way}: ${rows.length} records`)
    if (way === 'sql' && j.once && rows.length > 1) violate(`${key}: one insert made ${rows.length} records`)
    for (const row of rows) {
      const place = placeText(row)
      const all = byPlace.get(place) ?? []
      const [receipt = isHeld(submission, all) ? all[0] : undefined, ...more] = all.filter(({ final }) => final)
      if (!receipt || more.length > 0)
        violate(`result ${place}: ${more.length + (receipt ? 1 : 0)} final receipts of ${all.length}`)
      if (receipt)
        judge(submission, submission.resultId ?? sourceText(sourceFrom(receipt)), receipt.verdict, `result ${place} (${key})`)
    }
    if (isTopic) continue
    const receipts = byCommand.get(key) ?? []
    if (answer === undefined || receipts.length === 0) violate(`${key} by ${way}: answer ${answer}, ${receipts.length} receipts`)
    if (submission.early && answer !== undefined) {
      const final = receipts.find((each) => each.final) ?? (isHeld(submission, receipts) ? receipts[0] : undefined)
      if (!final) violate(`${key} by ${way}: no final receipt`)
      else judge(submission, submission.resultId ?? '', final.verdict, `${key} by ${way}`)
      continue
    }
    if (receipts.some(({ verdict }) => verdict !== answer)) violate(`${key} by ${way}: answer ${answer}, another in the receipts`)
    if (answer !== undefined) judge(submission, submission.resultId ?? `${way}:${key}`, answer, `${key} by ${way}`)
  }
  const keys = new Set(j.sent.map(({ key }) => key))
  for (const row of j.rows) if (!keys.has(row.key)) violate(`result ${placeText(row)}: nobody sent ${row.key}`)
  checkOutcomes(j, violate)
  return counts
}

/** True if it came before its wait, and that never came. */
const isHeld = ({ early }: Submission, receipts: readonly Receipt[]): boolean =>
  early && receipts.length > 0 && receipts.every(({ verdict, final }) => verdict === 'held' && !final)

/** What can be said to a submission, once it is known how its wait ended. */
function expected(
  { fixed, wait: id, digest, misfit, early }: Submission,
  resultId: string,
  waits: ReadonlyMap<string, Wait>,
): string[] {
  if (fixed !== undefined) return [fixed]
  const wait = waits.get(id ?? '')
  if (!wait) return early ? ['held'] : ['unknown']
  // Its verdict came before any other result was sent.
  if (misfit) return wait.outcome ? ['invalid'] : ['invalid', wait.status]
  if (!wait.outcome) return [wait.status]
  if (wait.outcome.digest !== digest) return ['conflict']
  return [wait.outcome.resultId === resultId ? 'accepted' : 'duplicate']
}

/** Each outcome of the log is a result somebody sent, and where only one came first it is that one. */
function checkOutcomes({ sent, waits, events, rows }: Judging, violate: Violate): void {
  const ofWait = Map.groupBy(sent, ({ wait }) => wait)
  const keyAt = new Map(rows.map((row) => [placeText(row), row.key]))
  for (const event of events) {
    if (event.type !== 'continuation.completed/1' && event.type !== 'continuation.failed/1') continue
    const { continuation_id: id, source, digest } = event.data
    const key = source.command_id ?? keyAt.get(placeText({ partition: source.partition ?? -1, offset: source.offset ?? -1 }))
    const submission = ofWait.get(id)?.find((each) => each.key === key)
    if (!submission || submission.digest !== digest) violate(`wait ${id}: answered by a result that nobody sent (${key})`)
    const first = ofWait.get(id)?.find((each) => each.first)
    if (first && first !== submission && first.resultId !== submission?.resultId)
      violate(`wait ${id}: ${key} overtook ${first.key}`)
  }
  for (const { status, id, outcome } of waits.values())
    if (status === 'claimed' && !outcome) violate(`wait ${id}: claimed without an outcome`)
}

/** A receipt's coordinate as its event has it. */
function sourceFrom({ source }: Receipt): Parameters<typeof sourceText>[0] {
  const none = { cluster: null, topic: null, partition: null, offset: null, record_time: null, api: null, command_id: null }
  return { ...none, ...source }
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key)
  if (values) values.push(value)
  else map.set(key, [value])
}
