import { encodeResult, outcomeDigest, type ResultRecord } from '../../../src/continuations/index.ts'
import type { Fleet } from './fleet.ts'
import type { Producer } from './inserter.ts'
import type { Watcher } from './watcher.ts'

export type Way = 'sql' | 'topic' | 'http' | 'submit' | 'approve' | 'deny'

/** One result as it was sent, however often it took. */
export interface Submission {
  /** Key of the records in `results`, or the id of the call. */
  readonly key: string
  readonly way: Way
  /** The wait meant; undefined when there is none. */
  readonly wait: string | undefined
  readonly resultId: string | undefined
  readonly digest: string | undefined
  /** The only verdict there can be, whatever becomes of the wait. */
  readonly fixed: string | undefined
  /** Had its verdict before any other result of its wait was sent: if the wait was answered, then by this one. */
  readonly first: boolean
  /** Sent before its wait may be there: `held` first, perhaps. */
  readonly early: boolean
  /** The tool's schema refuses it while the wait is pending. */
  readonly misfit: boolean
  /** Answers to the caller, of the ways that have them. */
  answer: string | undefined
}

export interface Sending {
  way?: Way
  first?: boolean
  misfit?: boolean
  early?: boolean
  fixed?: string
  /** Sent as it is, instead of the record. */
  raw?: Uint8Array
}

/** The producers of results: each record by one of the ways in. Remembers everything that was sent. */
export class Submissions {
  readonly sent: Submission[] = []
  readonly #fleet: Fleet
  readonly #inserter: Producer
  readonly #watcher: Watcher
  readonly #random: () => number

  constructor(o: { fleet: Fleet; inserter: Producer; watcher: Watcher; random: () => number }) {
    this.#fleet = o.fleet
    this.#inserter = o.inserter
    this.#watcher = o.watcher
    this.#random = o.random
  }

  #way(): Way {
    const x = this.#random()
    return x < 0.35 ? 'sql' : x < 0.6 ? 'topic' : x < 0.9 ? 'http' : 'submit'
  }

  /** Sends a result of the carrier. Resolves with its verdict; `written` resolves earlier, when it is on its way. */
  send(record: ResultRecord, o: Sending = {}): { written: Promise<void>; verdict: Promise<string> } {
    const way = o.way ?? this.#way()
    const outcome = record.failure
      ? { failure: { retryable: false, ...record.failure } }
      : { result: record.result === undefined ? null : record.result }
    const submission = this.#add({
      way,
      wait: record.continuation_id ?? record.external_id,
      resultId: record.result_id,
      digest: outcomeDigest(outcome),
      fixed: o.fixed,
      first: o.first ?? false,
      misfit: o.misfit ?? false,
      early: o.early ?? false,
    })
    const { key } = submission
    const json = JSON.stringify(record)
    if (way === 'http' || way === 'submit') {
      const verdict =
        way === 'http' ? this.#fleet.post(json, key) : this.#fleet.ask<string>('submit', { record: json, commandId: key })
      const answered = verdict.then((answer) => (submission.answer = answer))
      return { written: answered.then(() => {}), verdict: answered }
    }
    const avro = o.fixed === undefined && this.#random() < 0.3
    const bytes = o.raw ?? (avro ? encodeResult(record) : Buffer.from(json))
    const written =
      way === 'sql'
        ? this.#inserter.insert(key, bytes)
        : this.#fleet.ask<null>('publish', { key, record: Buffer.from(bytes).toString('base64') }).then(() => {})
    return { written, verdict: written.then(() => this.#watcher.verdicts.when(key)) }
  }

  /** Approves or denies a proposed call. */
  async decide(way: 'approve' | 'deny', wait: string, digest: string): Promise<void> {
    const outcome = { result: { approved: way === 'approve' } }
    const shared = {
      wait,
      resultId: undefined,
      digest: outcomeDigest(outcome),
      fixed: undefined,
      first: true,
      misfit: false,
      early: false,
    }
    const submission = this.#add({ way, ...shared })
    submission.answer = await this.#fleet.ask<string>(way, { id: wait, digest, commandId: submission.key })
  }

  #add(s: Omit<Submission, 'key' | 'answer'>): Submission {
    const submission: Submission = { ...s, key: `sent-${this.sent.length}`, answer: undefined }
    this.sent.push(submission)
    return submission
  }
}
