import { z } from 'zod'
import { type JsonValue, Payload, parseJson } from '../base/index.ts'
import { cloudEvent, type Source } from '../events/index.ts'
import type { TopicRecord } from '../log/index.ts'
import { externalIdKey } from './ids.ts'
import { type Judgement, verdicts } from './judgement.ts'
import { digestSchema, externalIdSchema, idSchema, nameSchema } from './names.ts'
import type { Address } from './result.ts'
import { sourceText } from './source.ts'

const coordinate = z.union([
  z.strictObject({
    /** Cluster id, or the id of the file. */
    cluster: z.string(),
    topic: z.string(),
    partition: z.int().min(0),
    offset: z.int().min(0),
    /** Epoch milliseconds. */
    record_time: z.int().min(0),
  }),
  z.strictObject({ api: z.string(), command_id: z.string() }),
])

/**
 * What became of one submitted result (R19), as it stands in `threadlog_receipts` and topic `.receipts`. Each coordinate gets
 * exactly one final receipt, equal whenever it is made again. Carries no payload.
 */
export const receiptSchema = z.strictObject({
  source: coordinate,
  /** Counts the receipts of one coordinate, from 1. */
  sequence: z.int().min(1),
  final: z.boolean(),
  verdict: z.enum(verdicts),
  provider: nameSchema.optional(),
  external_id: externalIdSchema.optional(),
  continuation_id: idSchema.optional(),
  result_id: z.string().optional(),
  /** Digest of the result that answered the wait, on `duplicate` and `conflict`. */
  digest: digestSchema.optional(),
  code: z.string().optional(),
  path: z.string().optional(),
  expected: z.string().optional(),
})

export type Receipt = z.infer<typeof receiptSchema>

/** What a receipt says about the submission it answers. */
export interface Submitted {
  readonly provider?: string
  readonly address?: Address
  readonly result_id?: string
}

/** Outsiders must not learn that a wait of another application or provider exists. */
const shownVerdict = ({ verdict }: Judgement): Receipt['verdict'] => (verdict === 'wrong-scope' ? 'unknown' : verdict)

/** The final receipt of a judged submission; `held` is the one verdict that is not final. */
export function makeReceipt(source: Source, submitted: Submitted, judgement: Judgement): Receipt {
  const { provider, address } = submitted
  const { digest, code, path, expected } = judgement
  return {
    source: coordinateOf(source),
    sequence: 1,
    final: judgement.verdict !== 'held',
    verdict: shownVerdict(judgement),
    ...(provider === undefined ? {} : { provider }),
    ...address,
    result_id: submitted.result_id ?? sourceText(source),
    ...(digest === undefined ? {} : { digest }),
    ...(code === undefined ? {} : { code }),
    ...(path === undefined ? {} : { path }),
    ...(expected === undefined ? {} : { expected }),
  }
}

function coordinateOf(source: Source): Receipt['source'] {
  const { cluster, topic, partition, offset, record_time } = source
  if (topic === null) return { api: source.api ?? '', command_id: source.command_id ?? '' }
  return { cluster: cluster ?? '', topic, partition: partition ?? 0, offset: offset ?? 0, record_time: record_time ?? 0 }
}

/** UTF-8 bytes of canonical JSON: the same receipt gives the same bytes. */
export const encodeReceipt = (receipt: Receipt): Uint8Array => Payload.of(receipt as unknown as JsonValue).bytes

/** @throws ThreadlogError `json_invalid`, or a ZodError if it is no receipt */
export const decodeReceipt = (bytes: Uint8Array): Receipt => receiptSchema.parse(parseJson(bytes))

/** CloudEvents type of receipts. */
export const RECEIPT = 'threadlog.receipt/1'

/**
 * CloudEvents attributes of a receipt. Id, source and time come from the coordinate it answers, so that they are equal whenever it is
 * made again; a call has no time of its own and names that of its receipt.
 */
export function receiptHeaders(receipt: Receipt, now: number): Record<string, string> {
  const { source, sequence } = receipt
  const [from, place] =
    'api' in source
      ? [['api', source.api], [source.command_id]]
      : [
          ['log', source.cluster],
          [source.topic, source.partition, source.offset, source.record_time],
        ]
  return cloudEvent({
    id: [...place, sequence].join('/'),
    source: `/threadlog/${from.map(encodeURIComponent).join('/')}`,
    type: RECEIPT,
    subject: receiptSubject(receipt),
    time: 'api' in source ? now : source.record_time,
  })
}

/** The wait a receipt is about, as keys and headers may say it: a provider's own id of its job stands in no header (continuation spec §4). */
export const receiptSubject = ({ continuation_id, external_id, provider }: Receipt): string | undefined =>
  continuation_id ?? (provider && external_id ? externalIdKey(provider, external_id) : undefined)

/** A receipt as a record of topic `receipts`. */
export const receiptRecord = (key: string, receipt: Receipt, now: number): TopicRecord => ({
  key,
  value: encodeReceipt(receipt),
  headers: receiptHeaders(receipt, now),
})
