import type { Kafka, Producer, TopicMessages } from 'kafkajs'
import { retryLater, type ThreadlogError } from '../../base/index.ts'
import { producerOf } from './connection.ts'
import { FENCED, isKind, translate } from './errors.ts'

/** Records out and one group's next offset in one partition of one topic, all or nothing. */
export interface Transaction {
  messages: readonly TopicMessages[]
  progress?: { topic: string; group: string; partition: number; next: bigint; expect?: bigint }
}

/** First record of a transaction in a partition. */
export interface Written {
  topic: string
  partition: number
  offset: bigint
}

/** Reads a progress from the cluster. */
type Saved = (progress: NonNullable<Transaction['progress']>) => Promise<bigint | undefined>

/** Milliseconds a transaction may stay open before the cluster aborts it. */
const TRANSACTION_MS = 30_000
/** EndTxn is answered before its markers are written; the next transaction is then told to wait. */
const RETRY = { initialRetryTime: 2, maxRetryTime: 200, retries: 8 }

/**
 * Transactions under one transactional id, one after the other. Whoever takes the id fences the one before: its open transaction is
 * aborted and it can commit nothing more. After taking it, progress is read from the cluster once and is then known here.
 */
export class Transactor {
  readonly #kafka: Kafka
  readonly #id: string
  readonly #saved: Saved
  #producer: Producer | undefined
  readonly #known = new Map<string, bigint | undefined>()
  #turn: Promise<unknown> = Promise.resolve()

  constructor(kafka: Kafka, id: string, saved: Saved) {
    this.#kafka = kafka
    this.#id = id
    this.#saved = saved
  }

  /**
   * @returns the first record of each partition written to. It is committed, but may not be readable yet.
   * @throws ThreadlogError `progress_moved` when another member took over or `expect` is not what is saved; `log_unavailable` when it is
   * not known whether the transaction was committed: the saved progress tells
   */
  run(transaction: Transaction): Promise<Written[]> {
    const turn = this.#turn.then(
      () => this.#run(transaction),
      () => this.#run(transaction),
    )
    this.#turn = turn
    return turn
  }

  /** Where a group stands by what was written under this id: the cluster may name the place before it for a moment yet. */
  saved(group: string, topic: string, partition: number): bigint | undefined {
    return this.#known.get(keyOf({ group, topic, partition }))
  }

  /** What was written of a partition does not hold for the one that is there now. */
  forget(group: string, topic: string, partition: number): void {
    this.#known.delete(keyOf({ group, topic, partition }))
  }

  async #run({ messages, progress }: Transaction): Promise<Written[]> {
    try {
      const producer = await this.#taken()
      if (progress?.expect !== undefined) await this.#compare(progress)
      const transaction = await producer.transaction()
      const written: Written[] = []
      for (const { topic, messages: records } of messages)
        if (records.length > 0)
          for (const { partition, baseOffset } of await transaction.send({ topic, acks: -1, messages: records }))
            written.push({ topic, partition, offset: BigInt(baseOffset ?? 0) })
      if (progress) {
        const { group, topic, partition, next } = progress
        await transaction.sendOffsets({
          consumerGroupId: group,
          topics: [{ topic, partitions: [{ partition, offset: String(next) }] }],
        })
      }
      await transaction.commit()
      if (progress) this.#known.set(keyOf(progress), progress.next)
      return written
    } catch (error) {
      // Fenced, overtaken or of unknown fate: this producer object is of no use any more, and what it knew may be old.
      this.#drop()
      throw isKind(error, ...FENCED) ? moved(this.#id) : translate(error, this.#id)
    }
  }

  /** The producer, after fencing whoever had the id before. */
  async #taken(): Promise<Producer> {
    if (this.#producer) return this.#producer
    const producer = producerOf(this.#kafka, {
      transactionalId: this.#id,
      idempotent: true,
      maxInFlightRequests: 1,
      transactionTimeout: TRANSACTION_MS,
      retry: RETRY,
    })
    await producer.connect()
    this.#producer = producer
    // The id is taken with the first transaction: an empty one, so that what is read after it cannot be moved by others.
    await (await producer.transaction()).abort()
    return producer
  }

  async #compare(progress: NonNullable<Transaction['progress']>): Promise<void> {
    const key = keyOf(progress)
    if (!this.#known.has(key)) this.#known.set(key, await this.#saved(progress))
    const saved = this.#known.get(key)
    if (saved !== undefined && saved !== progress.expect) throw moved(this.#id)
  }

  #drop(): Promise<void> {
    const producer = this.#producer
    this.#producer = undefined
    this.#known.clear()
    return producer ? producer.disconnect().catch(() => {}) : Promise.resolve()
  }

  /** After what is under way. */
  async close(): Promise<void> {
    await this.#turn.catch(() => {})
    await this.#drop()
  }
}

const keyOf = ({ group, topic, partition }: { group: string; topic: string; partition: number }): string =>
  `${group} ${topic} ${partition}`

export const moved = (path: string): ThreadlogError =>
  retryLater('progress_moved', 'Another member of the group has gone on meanwhile.', {
    path,
    hint: 'Read the saved progress and go on from there.',
  })
