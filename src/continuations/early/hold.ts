import { type JsonObject, type JsonValue, Payload } from '../../base/index.ts'
import type { Actor, Source } from '../../events/index.ts'
import { countHeld, type HeldResult, Proposal, type ThreadState, type ThreadStore } from '../../projections/index.ts'
import { externalIdKey } from '../ids.ts'
import type { Judgement } from '../judgement.ts'
import { decodeReceipt, type Receipt } from '../receipt.ts'
import { parseResult, type Submission } from '../result.ts'
import { sourceText } from '../source.ts'
import { contextOf, reservationStream } from '../store/reservations.ts'

// Results that come before their wait (design §6): an event of the stream in which the external id is reserved, so that reserving and holding are
// decided in one order, and the same wherever the log is replayed.

/** Which results are held, how many, and how long. */
export interface EarlyResults {
  /** True for providers that pick the ids of their jobs: theirs alone can come early. */
  holds(provider: string): boolean
  /** Milliseconds. */
  readonly keepMs: number
  /** Results held of one provider in one application; processes that count at once may exceed it by what each has in flight. */
  readonly perProvider: number
}

export const EARLY_DEFAULTS = { keepMs: 86_400_000, perProvider: 10_000 } as const
/** Results held for one external id: more are no accident. */
export const HELD_PER_ID = 8

/**
 * Holds a result for which there is no wait behind a read barrier. One that was held before keeps its verdict, held or final.
 * @returns `unknown` for what is not held
 */
export async function hold(
  deps: { readonly store: ThreadStore; readonly application: string; readonly early?: EarlyResults | undefined },
  submission: Submission,
  { actor, source }: { readonly actor: Actor; readonly source: Source },
): Promise<Judgement> {
  const { store, early } = deps
  const { address, provider } = submission
  if (!early || !('external_id' in address) || !early.holds(provider)) return { verdict: 'unknown' }
  const application = submission.application_id ?? deps.application
  const key = externalIdKey(provider, address.external_id)
  const stream = reservationStream({ kind: 'external_id', application, provider, key })
  const isFull = countHeld(store.backend.tables, { application, provider, limit: early.perProvider }) >= early.perProvider
  const context = { ...contextOf(store, stream, actor), commandId: source.command_id }
  const draft = {
    type: 'reservation.held/1',
    data: {
      ...{ application_id: application, provider, external_id_key: key },
      record: Payload.of(recordOf(submission, application)),
      ...{ source, expires_at: context.now + early.keepMs },
    },
  } as const
  let judgement: Judgement = { verdict: 'held' }
  await store.commit(
    stream,
    (state) => {
      const before = recorded(state, submission, sourceText(source))
      judgement = before ?? (isFull || isFullFor(state) ? FULL : { verdict: 'held' })
      return before || judgement.verdict !== 'held' ? undefined : Proposal.on(state, context).add(draft)
    },
    Number.POSITIVE_INFINITY,
  )
  return judgement
}

const FULL: Judgement = {
  verdict: 'held-full',
  code: 'held_full',
  path: '$',
  expected: 'results that come behind their waits; send it again later',
}

const isFullFor = (state: ThreadState): boolean => (state.early?.held.length ?? 0) >= HELD_PER_ID

/** The verdict that the same submission has, if it was held before: the same coordinate, or the same id and outcome. */
function recorded({ early }: ThreadState, submission: Submission, source: string): Judgement | undefined {
  const { result_id: id } = submission
  const isSame = (one: { source: string; resultId: string | undefined; digest: string }) =>
    one.source === source || (id !== undefined && one.resultId === id && one.digest === submission.digest)
  if (early?.held.some((held) => isSame(ofHeld(held)))) return { verdict: 'held' }
  for (const { receipt, digest } of early?.settled ?? []) {
    const { verdict, code, path, expected, ...rest } = decodeReceipt(receipt.bytes)
    if (!isSame({ source: textOf(rest.source), resultId: rest.result_id, digest })) continue
    const told = {
      ...(code && { code }),
      ...(path && { path }),
      ...(expected && { expected }),
      ...(rest.digest && { digest: rest.digest }),
    }
    return { verdict, ...told }
  }
  return undefined
}

const textOf = (source: Receipt['source']): string =>
  'api' in source
    ? `${source.api}:${source.command_id}`
    : `${source.cluster}/${source.topic}/${source.partition}/${source.offset}`

const ofHeld = ({ source, record }: HeldResult) => {
  const { submission } = parsed(record)
  return { source: sourceText(source), resultId: submission.result_id, digest: submission.digest }
}

/** The record of topic `results` that says the same. */
function recordOf(submission: Submission, application: string): JsonObject {
  const { provider, address, result_id, schema_id, proposal_digest, outcome } = submission
  return {
    ...{ application_id: application, provider, ...address, result_id, schema_id, proposal_digest },
    ...('failure' in outcome ? { failure: { ...outcome.failure } as unknown as JsonValue } : { result: outcome.result }),
  } as JsonObject
}

/** What a held record says. */
export function parsed(record: Payload): { submission: Submission } {
  const read = parseResult(record.value as JsonObject)
  if ('submission' in read) return read
  throw new TypeError('A held result cannot be read.')
}
