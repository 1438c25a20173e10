import type { Kafka, Producer, RecordMetadata } from 'kafkajs'
import { reject, systemClock } from '../../base/index.ts'
import { COMMIT_LIMITS, type Commit } from '../../events/index.ts'
import { CLOSE_MS, producerOf, within } from './connection.ts'
import { closed, isHopeless, isKind, MISSING, TOO_LARGE, translate } from './errors.ts'

/** Bytes a record costs in a batch beside its value: key, lengths, offsets. Generous. */
const RECORD_OVERHEAD = 110
const PAUSE_MS = { first: 50, most: 1_000 }

interface Job {
  readonly partition: number
  readonly commit: Commit
  readonly bytes: number
  /** With the offset of its last record. */
  resolve(last: bigint): void
  reject(error: unknown): void
}

export interface SenderOptions {
  kafka: Kafka
  /** Full name of the topic. */
  topic: string
  /** Told of each send that failed and will be repeated. */
  onTrouble?(error: unknown): void
  /** Told after a repeated send was acknowledged: the log may hold the batch twice (R16: look at the lineage). */
  onRepeated?(): void
}

/**
 * Group commit over all partitions: one `sendBatch` in flight, what arrives meanwhile goes with the next, a commit never spans batches
 * (design §4). A send without a full answer is repeated, the same commits in the same batches, until it is acknowledged; each try by a new
 * producer, and never an idempotent one: kafkajs gives its sequence numbers back after an error, and the next batch would then be taken
 * for the old one and be acknowledged unwritten.
 */
export class Sender {
  readonly #o: SenderOptions
  readonly #queues = new Map<number, Job[]>()
  #producer: Producer | undefined
  #running: Promise<void> | undefined
  #closing = false
  readonly #stop = new AbortController()

  constructor(options: SenderOptions) {
    this.#o = options
  }

  /** Connects, so that a cluster that is away or refuses is known at once. */
  async connect(): Promise<void> {
    await this.#connected()
  }

  /** Sends a commit. Resolves with the offset of its last record once the cluster has acknowledged it (acks=all). */
  send(partition: number, commit: Commit): Promise<bigint> {
    if (this.#closing) return Promise.reject(closed())
    return new Promise((resolve, reject) => {
      const bytes = commit.records.reduce((sum, record) => sum + record.bytes.length + RECORD_OVERHEAD, 0)
      const job = { partition, commit, bytes, resolve, reject }
      const queue = this.#queues.get(partition)
      if (queue) queue.push(job)
      else this.#queues.set(partition, [job])
      this.#running ??= this.#run()
    })
  }

  async #run(): Promise<void> {
    // What is decided in the same turn goes into the same round.
    await new Promise<void>((resolve) => setImmediate(resolve))
    for (let round = this.#take(); round.length > 0; round = this.#take()) await this.#deliver(round)
    this.#running = undefined
  }

  /** The next round: per partition whole commits up to the limits of a batch. */
  #take(): Job[] {
    const round: Job[] = []
    for (const queue of this.#queues.values()) {
      let bytes = 0
      let records = 0
      let count = 0
      for (const job of queue) {
        bytes += job.bytes
        records += job.commit.records.length
        if (count > 0 && (bytes > COMMIT_LIMITS.bytes || records > COMMIT_LIMITS.records)) break
        count++
      }
      round.push(...queue.splice(0, count))
    }
    return round
  }

  async #deliver(round: Job[]): Promise<void> {
    for (let failures = 0; ; failures++) {
      if (this.#stop.signal.aborted) return refuse(round, closed())
      try {
        const answers = await this.#untilStopped(
          (await this.#connected()).sendBatch({ acks: -1, topicMessages: [this.#batch(round)] }),
        )
        this.#settle(round, answers)
        if (failures > 0) this.#o.onRepeated?.()
        return
      } catch (error) {
        this.#discard()
        if (isKind(error, ...TOO_LARGE)) return this.#separately(round)
        if (isHopeless(error) || (failures === 0 && isKind(error, ...MISSING)))
          return refuse(round, translate(error, this.#o.topic))
        this.#o.onTrouble?.(translate(error, this.#o.topic))
        await pause(failures, this.#stop.signal)
      }
    }
  }

  /** A broker that has fallen silent must not hold up closing until its answer is overdue. */
  #untilStopped<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stop
    return new Promise((resolve, reject) => {
      const stop = () => reject(closed())
      signal.addEventListener('abort', stop, { once: true })
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
    })
  }

  /** A broker that refuses a round may take its commits one by one; one it refuses alone is larger than it allows. */
  async #separately(round: Job[]): Promise<void> {
    if (round.length > 1) {
      for (const job of round) await this.#deliver([job])
      return
    }
    refuse(
      round,
      reject('commit_too_large', 'The cluster does not take a commit of this size.', {
        path: this.#o.topic,
        expected: `max.message.bytes of at least ${COMMIT_LIMITS.bytes} on the topic`,
        hint: 'Run `threadlog topics check`.',
        details: { bytes: round[0]?.bytes ?? 0 },
      }),
    )
  }

  #batch(round: readonly Job[]) {
    const messages = round.flatMap(({ partition, commit }) =>
      commit.records.map(({ bytes }) => ({
        partition,
        key: commit.stream,
        value: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      })),
    )
    return { topic: this.#o.topic, messages }
  }

  /** Gives each commit the offset of its last record. @throws when the answer leaves a partition out: then nothing is known of it */
  #settle(round: readonly Job[], answers: readonly RecordMetadata[]): void {
    const bases = new Map<number, bigint>()
    for (const { topicName, partition, errorCode, baseOffset } of answers)
      if (topicName === this.#o.topic && errorCode === 0 && baseOffset !== undefined) bases.set(partition, BigInt(baseOffset))
    for (const { partition } of round) if (!bases.has(partition)) throw new Error('a partition was not acknowledged')
    for (const { partition, commit, resolve } of round) {
      const end = bases.get(partition)! + BigInt(commit.records.length)
      bases.set(partition, end)
      resolve(end - 1n)
    }
  }

  async #connected(): Promise<Producer> {
    if (this.#producer) return this.#producer
    const producer = producerOf(this.#o.kafka, { idempotent: false, retry: { retries: 0 } })
    try {
      await producer.connect()
    } catch (error) {
      await producer.disconnect().catch(() => {})
      throw error
    }
    this.#producer = producer
    return producer
  }

  #discard(): void {
    const producer = this.#producer
    this.#producer = undefined
    // Its sockets may hang for as long as they like.
    void producer?.disconnect().catch(() => {})
  }

  /** Lets what was handed over come to its end, for at most `ms`, then refuses the rest. */
  async close(ms = 2_000): Promise<void> {
    this.#closing = true
    const timer = setTimeout(() => this.#stop.abort(), ms)
    let isOver = this.#running === undefined
    await within(
      ms + CLOSE_MS,
      this.#running?.finally(() => (isOver = true)),
    )
    clearTimeout(timer)
    this.#stop.abort()
    // A cluster that does not answer the one does not answer the other.
    const parting = this.#producer?.disconnect().catch(() => {})
    if (isOver) await within(CLOSE_MS, parting)
  }
}

const refuse = (round: readonly Job[], error: unknown): void => {
  for (const job of round) job.reject(error)
}

/** Waits before the next try: 50 ms doubling to 1 s, each with some spread. */
export function pause(failures: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2)
  return systemClock.sleep(ms, signal)
}
