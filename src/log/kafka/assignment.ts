import type { Consumer, Kafka } from 'kafkajs'
import type { StreamKey } from '../../events/index.ts'
import { partitionOf } from '../partition.ts'
import type { Assignment } from '../ports.ts'
import { CLOSE_MS, METADATA_MS, within } from './connection.ts'
import { closed, translate } from './errors.ts'
import { stickyAssigner } from './sticky.ts'

export interface GroupAssignmentOptions {
  kafka: Kafka
  /** Full name of the topic whose partitions stand for those of all others. */
  topic: string
  group: string
  partitions: number
  onTrouble?(error: unknown): void
}

/** Milliseconds without a sign of life after which a member's partitions go to the others; between two signs. */
const SESSION_MS = 10_000
const HEARTBEAT_MS = 1_000
/**
 * Milliseconds in which members hear of a new one and join it. After a broker's death the cluster waits so long for members that have begun
 * anew under other names; a cluster that fails more often than that never lets anybody in.
 */
const REBALANCE_MS = 4_000
/** Reads return often, so that leaving does not wait for one. */
const MAX_WAIT_MS = 500
const AGAIN_MS = 1_000

/**
 * One consumer group shares the partitions among the engines: owning one of this topic means owning the same of every other (design §7).
 * Nothing is read from the topic here. A member that was thought dead and wakes up keeps its share until the cluster tells it
 * otherwise; the log refuses what it does meanwhile (R5, R14).
 */
export class GroupAssignment implements Assignment {
  readonly #o: GroupAssignmentOptions
  readonly #listeners = new Set<() => void>()
  #consumer: Consumer | undefined
  /** Partitions of this process, with the time (`performance.now`) they came to it. */
  #mine: ReadonlyMap<number, number> = new Map()
  #share: ReadonlySet<number> | undefined
  /** Who of this process takes part. */
  #parts = 0
  #joining: Promise<void> | undefined
  #giveUp = () => {}
  /** When (`performance.now`) the cluster last said that this process is a member. */
  #heard = 0

  constructor(options: GroupAssignmentOptions) {
    this.#o = options
  }

  get share(): ReadonlySet<number> | undefined {
    return this.#share
  }

  owns(stream: StreamKey, ms = 0): boolean {
    const since = this.#mine.get(partitionOf(stream, this.#o.partitions))
    return since !== undefined && performance.now() - since >= ms
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async join(): Promise<void> {
    this.#parts++
    this.#joining ??= this.#enter()
    try {
      await this.#joining
    } catch (error) {
      this.#parts--
      this.#joining = undefined
      throw error
    }
  }

  async #enter(): Promise<void> {
    this.#set([])
    const joined = Promise.withResolvers<void>()
    this.#giveUp = () => joined.reject(closed())
    await this.#start(() => joined.resolve())
    await joined.promise
  }

  async #start(onJoined: () => void): Promise<void> {
    const { kafka, topic, group, partitions, onTrouble } = this.#o
    const consumer = kafka.consumer({
      groupId: group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      metadataMaxAge: METADATA_MS,
      maxWaitTimeInMs: MAX_WAIT_MS,
      allowAutoTopicCreation: false,
      partitionAssigners: [stickyAssigner(topic, partitions, () => this.#kept())],
      // Whether to go on after a crash is decided below, once.
      retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 4, restartOnFailure: async () => false },
    })
    consumer.on(consumer.events.HEARTBEAT, () => {
      this.#heard = performance.now()
    })
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      if (this.#consumer !== consumer) return
      this.#heard = performance.now()
      this.#set(payload.memberAssignment[topic] ?? [])
      onJoined()
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (this.#consumer !== consumer) return
      onTrouble?.(translate(payload.error, group))
      this.#consumer = undefined
      this.#set([])
      void this.#again(consumer, onJoined)
    })
    this.#consumer = consumer
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: false })
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch: async () => {} })
    } catch (error) {
      if (this.#consumer === consumer) this.#consumer = undefined
      void consumer.disconnect().catch(() => {})
      throw translate(error, group)
    }
  }

  /** What this member asks to keep: after a silence in which its session may have ended, others have it. */
  #kept(): Iterable<number> {
    return performance.now() - this.#heard < SESSION_MS ? this.#mine.keys() : []
  }

  /** Begins anew with a member of its own, until that works or this process leaves. */
  async #again(crashed: Consumer, onJoined: () => void): Promise<void> {
    void crashed.disconnect().catch(() => {})
    while (this.#parts > 0) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      if (this.#parts === 0) return
      try {
        return await this.#start(onJoined)
      } catch (error) {
        this.#o.onTrouble?.(error)
      }
    }
  }

  #set(mine: readonly number[] | undefined): void {
    const before = this.#share
    const share = mine && new Set(mine)
    const now = performance.now()
    this.#mine = new Map((mine ?? []).map((partition) => [partition, this.#mine.get(partition) ?? now]))
    this.#share = share
    const same = share?.size === before?.size && [...(share ?? [])].every((partition) => before?.has(partition))
    if (!same) for (const listener of this.#listeners) listener()
  }

  async leave(): Promise<void> {
    if (this.#parts === 0 || --this.#parts > 0) return
    const consumer = this.#consumer
    this.#consumer = undefined
    this.#joining = undefined
    this.#giveUp()
    // First nothing is ours, which stops whoever works here; then we take no part.
    this.#set([])
    this.#set(undefined)
    await within(CLOSE_MS, consumer?.disconnect())
  }

  /** Leaves, whoever still takes part. */
  async close(): Promise<void> {
    this.#parts = Math.min(this.#parts, 1)
    await this.leave()
  }
}
