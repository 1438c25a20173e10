import { type Receipt, receiptSchema } from '../../src/continuations/index.ts'
import { parseResult } from '../../src/continuations/result.ts'
import { decodeEvent } from '../../src/events/index.ts'
import type { Engine, Threadlog } from '../../src/index.ts'
import { type AvroFields, avroText } from '../kit/avro-record.ts'
import { accepted, type Border, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { type ExpectedSubmission, expectedOf } from '../kit/expected.ts'
import { bytesOf } from '../kit/json-text.ts'
import { assertClean, codeOf } from '../kit/marker.ts'
import { shorterLists, shorterTexts, simplerValues } from '../kit/minimise.ts'
import { eventCount, openShop, placed, type ShopWait } from '../kit/shop.ts'
import { assertVerifies } from '../kit/verify.ts'
import { acceptedValue, WaitBook, type Way } from '../kit/wait-book.ts'
import { avroRecord, resultBytes } from './result-text.ts'

/** One record, one character a byte, and the way it comes in. */
export interface ResultCase {
  bytes: string
  way: 'call' | 'topic'
  /** Sent so many times. */
  times: number
  /** A record in Avro, in place of `bytes`; then changed at these places, as parts of a thousand, to these bytes. */
  avro?: { fields: AvroFields; spoilt: [number, number][] }
}

/** Result records by the API and by the topic, judged by an engine on a log in memory. */
export const results: Border<ResultCase> = {
  name: 'results',
  about: 'result records: bytes, JSON by its grammar and broken, through submit() and the results topic',
  limitMs: 5_000,
  renewAfter: 300,
  open: () => ResultRig.open(),
  generate: (random) => ({
    bytes: resultBytes(random),
    way: random.once(4) ? 'topic' : 'call',
    times: random.once(10) ? 2 : 1,
    ...(random.once(5) && { bytes: '', avro: avroRecord(random) }),
  }),
  *simpler(input) {
    if (input.times > 1) yield { ...input, times: 1 }
    if (input.way !== 'call') yield { ...input, way: 'call' }
    for (const bytes of shorterTexts(input.bytes)) yield { ...input, bytes }
    const { avro } = input
    if (!avro) return
    for (const spoils of shorterLists(avro.spoilt)) yield { ...input, avro: { ...avro, spoilt: spoils } }
    for (const fields of simplerValues(avro.fields)) if (isFields(fields)) yield { ...input, avro: { ...avro, fields } }
  },
}

class ResultRig implements Rig<ResultCase> {
  readonly #threads: Threadlog
  readonly #engine: Engine
  readonly #book: WaitBook
  #sent = 0

  private constructor(threads: Threadlog, engine: Engine, book: WaitBook) {
    this.#threads = threads
    this.#engine = engine
    this.#book = book
  }

  static async open(): Promise<ResultRig> {
    const { threads, waits } = await openShop()
    return new ResultRig(threads, await threads.serve({ sweepMs: 60_000 }), new WaitBook(waits))
  }

  async try({ bytes: text, way, times, avro }: ResultCase): Promise<Outcome> {
    const bytes = bytesOf(avro ? spoilt(avro, (part) => placed(part, this.#book.waits)) : placed(text, this.#book.waits))
    let outcome: Outcome = refused('none')
    const name = `case-${this.#sent++}`
    for (let i = 0; i < times; i++) outcome = await this.#submit(bytes, way, name)
    return outcome
  }

  async #submit(bytes: Uint8Array, way: ResultCase['way'], name: string): Promise<Outcome> {
    const expected = expectedOf(bytes)
    comparePlainly(bytes)
    const before = eventCount(this.#threads)
    const { receipt, coordinate } = way === 'call' ? await this.#called(bytes, name) : await this.#published(bytes)
    const written = eventCount(this.#threads) - before
    checkReceipt(receipt)
    if (expected.verdict !== 'submission') {
      promise(receipt.verdict === expected.verdict, 'silent', `${expected.verdict} was judged ${receipt.verdict}`, receipt.code)
      promise(written === 0, 'written', `an ${expected.verdict} record wrote ${written} events`)
      return refused(receipt.code ?? receipt.verdict)
    }
    return this.#judged(receipt, expected, { outside: true, coordinate }, written)
  }

  #judged(receipt: Receipt, expected: ExpectedSubmission, way: Way, written: number): Outcome {
    const { verdict } = receipt
    const may = this.#book.verdicts(expected, way)
    promise(may.includes(verdict), 'silent', `${may.join(' or ')} was judged ${verdict}`, receipt.code)
    const isNew = verdict === 'accepted' && this.#book.accept(expected, way)
    promise(written === (isNew ? 1 : 0), 'written', `verdict ${verdict} wrote ${written} events`)
    if (isNew) this.#checkStored(expected)
    return verdict === 'accepted' || verdict === 'duplicate' ? accepted(verdict) : refused(receipt.code ?? verdict)
  }

  /** The newest event is the outcome, word for word. */
  #checkStored(expected: ExpectedSubmission): void {
    const wait = this.#book.waitOf(expected) as ShopWait
    const row = this.#threads.backend.tables.get<{ value: Uint8Array }>('SELECT value FROM events ORDER BY id DESC LIMIT 1')
    const { type, data } = decodeEvent(row?.value ?? new Uint8Array())
    const right = 'failure' in expected.outcome ? 'continuation.failed/1' : 'continuation.completed/1'
    promise(type === right, 'silent', `an accepted result became ${type}`)
    if (type !== 'continuation.failed/1' && type !== 'continuation.completed/1') return
    promise(
      data.continuation_id === wait.id && data.digest === expected.digest,
      'silent',
      'an accepted result is stored elsewhere',
    )
    if (type === 'continuation.failed/1') return
    const stored = Buffer.from(data.value.bytes).toString('utf8')
    promise(stored === acceptedValue(wait, expected), 'silent', 'another value is stored than was sent')
  }

  async #called(bytes: Uint8Array, name: string): Promise<{ receipt: Receipt; coordinate: string }> {
    try {
      return { receipt: await this.#threads.submit(bytes, { commandId: name }), coordinate: `submit:${name}` }
    } catch (error) {
      codeOf(error, 'submit')
      throw error
    }
  }

  async #published(bytes: Uint8Array): Promise<{ receipt: Receipt; coordinate: string }> {
    const { topics } = this.#threads.backend
    const [next] = (await topics.publish('results', [{ key: 'k', value: bytes }])).values()
    const offset = Number(next) - 1
    for (;;) {
      const row = this.#threads.backend.tables.get<{ value: string }>(
        'SELECT value FROM threadlog_receipts WHERE source_offset = ?',
        offset,
      )
      if (row) {
        const receipt = receiptSchema.parse(JSON.parse(row.value))
        const { cluster } = receipt.source as { cluster: string }
        return { receipt, coordinate: `${cluster}/results/0/${offset}` }
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  async settle(): Promise<void> {
    await assertVerifies(this.#threads.backend)
  }

  async close(): Promise<void> {
    await this.#engine.close()
    await this.#threads.close()
  }
}

const isFields = (value: unknown): value is AvroFields => typeof (value as Partial<AvroFields> | null)?.provider === 'string'

function spoilt({ fields, spoilt }: NonNullable<ResultCase['avro']>, text: (part: string) => string): string {
  const told = (value: unknown): unknown =>
    typeof value === 'string' ? text(value) : value !== null && typeof value === 'object' ? mapped(value, told) : value
  let bytes = avroText(told(fields) as AvroFields)
  for (const [place, byte] of spoilt) {
    const at = Math.floor((bytes.length * place) / 1_000)
    bytes = byte > 255 ? bytes.slice(0, at) : bytes.slice(0, at) + String.fromCharCode(byte) + bytes.slice(at + 1)
  }
  return bytes
}

const mapped = (value: object, change: (item: unknown) => unknown): unknown =>
  Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item)]))

/** What the reader of records says, against what the contract says. */
function comparePlainly(bytes: Uint8Array): void {
  const expected = expectedOf(bytes)
  const parsed = parseResult(bytes)
  const said = 'submission' in parsed ? 'submission' : parsed.refusal.verdict
  const why = 'submission' in parsed ? '' : parsed.refusal.code
  promise(said === expected.verdict, 'silent', `a record that is ${expected.verdict} reads as ${said}`, why)
  if (!('submission' in parsed) || expected.verdict !== 'submission') return
  const { submission } = parsed
  const address = 'continuation_id' in submission.address ? submission.address.continuation_id : submission.address.external_id
  const same =
    submission.provider === expected.provider &&
    address === (expected.continuation ?? expected.external) &&
    submission.application_id === expected.application &&
    submission.result_id === expected.resultId &&
    submission.schema_id === expected.schema &&
    submission.proposal_digest === expected.proposal
  promise(same, 'silent', 'a field reads as another value')
  promise(submission.digest === expected.digest, 'silent', 'the digest is not that of the outcome')
}

/** A receipt tells no payload: nothing but what names the submission comes from it. */
export function checkReceipt(receipt: Receipt): void {
  const read = receiptSchema.safeParse(receipt)
  promise(read.success, 'silent', 'a receipt that is none', read.error?.message)
  const { external_id: _e, continuation_id: _c, result_id: _r, source: _s, ...told } = receipt
  assertClean(JSON.stringify(told), `a receipt (${receipt.verdict})`)
}
