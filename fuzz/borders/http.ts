import { Socket } from 'node:net'
import { type Receipt, receiptSchema, verdicts } from '../../src/continuations/index.ts'
import type { Engine, Threadlog } from '../../src/index.ts'
import { accepted, type Border, Fault, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { type Expected, expectedOf } from '../kit/expected.ts'
import { exchange, type HttpAnswer } from '../kit/http-wire.ts'
import { bytesOf } from '../kit/json-text.ts'
import { assertClean } from '../kit/marker.ts'
import { shorterLists, shorterTexts } from '../kit/minimise.ts'
import { eventCount, openShop, placed } from '../kit/shop.ts'
import { assertVerifies } from '../kit/verify.ts'
import { WaitBook } from '../kit/wait-book.ts'
import { type HttpCase, httpCase, recordOf, TOKEN, wireOf } from './http-requests.ts'
import { checkReceipt } from './results.ts'

/** HTTP as bytes on a socket, answered by an engine on a log in memory. */
export const http: Border<HttpCase> = {
  name: 'http',
  about: 'HTTP on a socket: methods, headers, CloudEvents, lengths that lie, chunks, several requests at once, connections cut',
  limitMs: 8_000,
  renewAfter: 300,
  settleAfter: 100,
  open: () => HttpRig.open(),
  generate: httpCase,
  *simpler(input) {
    for (const requests of shorterLists(input.requests)) yield { ...input, requests }
    for (const [i, request] of input.requests.entries()) {
      for (const headers of shorterLists(request.headers))
        yield { ...input, requests: input.requests.with(i, { ...request, headers }) }
      for (const body of shorterTexts(request.body)) yield { ...input, requests: input.requests.with(i, { ...request, body }) }
    }
  },
}

const PROBE = 'GET /alive HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'

class HttpRig implements Rig<HttpCase> {
  readonly #threads: Threadlog
  readonly #engine: Engine
  readonly #book: WaitBook
  readonly #port: number
  /** A client that never ends its request: closing must not wait for it. */
  readonly #stuck = new Socket().on('error', () => {})

  private constructor(threads: Threadlog, engine: Engine, book: WaitBook) {
    this.#threads = threads
    this.#engine = engine
    this.#book = book
    this.#port = Number(new URL(engine.http?.url ?? '').port)
  }

  static async open(): Promise<HttpRig> {
    const { threads, waits } = await openShop()
    const rig = new HttpRig(threads, await threads.serve({ sweepMs: 60_000, http: { token: TOKEN } }), new WaitBook(waits))
    rig.#stuck.connect(rig.#port, '127.0.0.1', () => rig.#stuck.write('POST /results HTTP/1.1\r\nhost: x\r\n'))
    return rig
  }

  async try(input: HttpCase): Promise<Outcome> {
    const before = { events: eventCount(this.#threads), receipts: this.#receipts() }
    const text = (part: string) => placed(part, this.#book.waits)
    const { answers, raw, wellFormed } = await exchange(
      this.#port,
      wireOf(input, text),
      input.requests.length,
      input.whole ? 3_000 : 150,
    )
    assertClean(raw.replace(/"(external_id|continuation_id|result_id|command_id)":"(\\.|[^"\\])*"/g, ''), 'an HTTP answer')
    promise(wellFormed || !input.whole, 'silent', 'the answer is not HTTP', raw.slice(0, 200))
    for (const answer of answers) checkAnswer(answer)
    if (input.whole) return this.#judged(input, answers, before, text)
    const written = eventCount(this.#threads) - before.events
    const may = input.requests.filter((request) => expectedOf(bytesOf(text(request.body))).verdict === 'submission').length
    promise(written <= Math.min(may, answersOf(answers, 200)), 'written', 'an event was written that no answer tells of')
    await this.#alive()
    if (written > 0) throw new Fault('silent', 'a request that is not whole was taken', JSON.stringify(input).slice(0, 500))
    return refused(answers.length === 0 ? 'no answer' : `status ${answers[0]?.status}`)
  }

  /** Requests that are whole and lawful: what becomes of each can be told beforehand. */
  #judged(
    input: HttpCase,
    answers: HttpAnswer[],
    before: { events: number; receipts: number },
    text: (part: string) => string,
  ): Outcome {
    let outcome = refused('none')
    let written = 0
    promise(answers.length === input.requests.length, 'silent', `${input.requests.length} requests got ${answers.length} answers`)
    for (const [i, request] of input.requests.entries()) {
      const { status, body } = answers[i] as HttpAnswer
      if (!request.authorized) {
        promise(status === 401, 'silent', `a request without the token got ${status}`)
        outcome = refused('unauthorized')
      } else if (request.method !== 'POST' || request.path !== '/results') {
        promise(status === 404, 'silent', `another path or method got ${status}`)
        outcome = refused('not_found')
      } else {
        const { record, id } = recordOf(request, text)
        const receipt = receiptSchema.parse(JSON.parse(body))
        checkReceipt(receipt)
        const taken = this.#compare(receipt, expectedOf(record), id)
        if (taken.isNew) written++
        outcome = taken.outcome
      }
    }
    promise(eventCount(this.#threads) - before.events === written, 'written', 'the events are not those the answers tell of')
    promise(
      this.#receipts() - before.receipts === input.requests.filter((r) => r.judged).length,
      'written',
      'not one receipt for each record',
    )
    return outcome
  }

  #compare(receipt: Receipt, expected: Expected, id: string | undefined): { outcome: Outcome; isNew: boolean } {
    const { verdict, source } = receipt
    const coordinate = 'api' in source ? `${source.api}:${source.command_id}` : ''
    promise(id === undefined || coordinate === `http:${id}`, 'silent', 'another submission is named', `${coordinate} for ${id}`)
    if (expected.verdict !== 'submission') {
      const right = expected.verdict
      promise(verdict === right, 'silent', `${right} was judged ${verdict}`, receipt.code)
      return { outcome: refused(receipt.code ?? verdict), isNew: false }
    }
    const way = { outside: true, coordinate }
    const may = this.#book.verdicts(expected, way)
    promise(may.includes(verdict), 'silent', `${may.join(' or ')} was judged ${verdict}`, receipt.code)
    const isNew = verdict === 'accepted' && this.#book.accept(expected, way)
    return {
      outcome: verdict === 'accepted' || verdict === 'duplicate' ? accepted(verdict) : refused(receipt.code ?? verdict),
      isNew,
    }
  }

  #receipts = (): number => this.#threads.backend.tables.get<{ n: number }>('SELECT count(*) AS n FROM receipts')?.n ?? 0

  async #alive(): Promise<void> {
    const { answers } = await exchange(this.#port, { pieces: [PROBE], after: 'wait' }, 1, 3_000)
    promise(answers[0]?.status === 401, 'crash', 'the server does not answer any more')
  }

  async settle(): Promise<void> {
    await this.#alive()
    await assertVerifies(this.#threads.backend)
  }

  async close(): Promise<void> {
    await this.#engine.close()
    this.#stuck.destroy()
    await this.#threads.close()
  }
}

const answersOf = (answers: HttpAnswer[], status: number): number => answers.filter((answer) => answer.status === status).length

/** Statuses an answer may have; what HTTP itself refuses (400, 408, 413, 431, 417, 501, 505) has no body of ours. */
const OURS = new Set([200, 400, 401, 403, 404, 409, 410, 413, 422, 423, 503])
const HTTPS_OWN = new Set([400, 408, 413, 414, 417, 431, 501, 505])

function checkAnswer({ status, body }: HttpAnswer): void {
  if (body === '' && HTTPS_OWN.has(status)) return
  promise(OURS.has(status), 'silent', `status ${status}`, body.slice(0, 200))
  if (body === '') return
  const json = parsed(body)
  if (typeof json['verdict'] === 'string') {
    promise((verdicts as readonly unknown[]).includes(json['verdict']), 'silent', 'a verdict that is none')
    promise(
      (status === 200) === ['accepted', 'duplicate'].includes(json['verdict']),
      'silent',
      `status ${status} for ${json['verdict']}`,
    )
  } else {
    const { code } = (json['error'] ?? {}) as { code?: unknown }
    promise(typeof code === 'string', 'uncoded', `status ${status} without a code`, body.slice(0, 200))
    promise(code !== 'unexpected' && status < 500, 'uncoded', `status ${status}: ${code}`, body.slice(0, 200))
  }
}

function parsed(body: string): Record<string, unknown> {
  try {
    return JSON.parse(body) as Record<string, unknown>
  } catch {
    throw new Fault('silent', 'the body of an answer is no JSON', body.slice(0, 200))
  }
}
