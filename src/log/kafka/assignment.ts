import type { Consumer, Kafka } from 'kafkajs'
import type { StreamKey } from '../../events/index.ts'
import { partitionOf } from '../partition.ts'
import type { Assignment } from '../ports.ts'
import { METADATA_MS } from './connection.ts'
import { translate } from './errors.ts'

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
const HEARTBEAT_MS = 2_000
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
  #mine: ReadonlySet<number> = new Set()
  #left = false

  constructor(options: GroupAssignmentOptions) {
    this.#o = options
  }

  /** Partitions of this process; undefined before it takes part. */
  get share(): ReadonlySet<number> | undefined {
    return this.#consumer ? this.#mine : undefined
  }

  owns(stream: StreamKey): boolean {
    return this.#mine.has(partitionOf(stream, this.#o.partitions))
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async join(): Promise<void> {
    this.#left = false
    const joined = Promise.withResolvers<void>()
    await this.#start(() => joined.resolve())
    await joined.promise
  }

  async #start(onJoined: () => void): Promise<void> {
    const { kafka, topic, group, onTrouble } = this.#o
    const consumer = kafka.consumer({
      groupId: group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: SESSION_MS,
      metadataMaxAge: METADATA_MS,
      maxWaitTimeInMs: MAX_WAIT_MS,
      allowAutoTopicCreation: false,
      // Whether to go on after a crash is decided below, once.
      retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 4, restartOnFailure: async () => false },
    })
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      if (this.#consumer !== consumer) return
      this.#set(new Set(payload.memberAssignment[topic] ?? []))
      onJoined()
    })
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (this.#consumer !== consumer) return
      onTrouble?.(translate(payload.error, group))
      this.#set(new Set())
      void this.#again(consumer, onJoined)
    })
    this.#consumer = consumer
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic], fromBeginning: false })
      await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch: async () => {} })
    } catch (error) {
      this.#consumer = undefined
      await consumer.disconnect().catch(() => {})
      throw translate(error, group)
    }
  }

  /** Begins anew with a member of its own, until that works or this process leaves. */
  async #again(crashed: Consumer, onJoined: () => void): Promise<void> {
    await crashed.disconnect().catch(() => {})
    while (!this.#left) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      if (this.#left) return
      try {
        return await this.#start(onJoined)
      } catch (error) {
        this.#o.onTrouble?.(error)
      }
    }
  }

  #set(mine: ReadonlySet<number>): void {
    const same = mine.size === this.#mine.size && [...mine].every((partition) => this.#mine.has(partition))
    this.#mine = mine
    if (!same) for (const listener of this.#listeners) listener()
  }

  async leave(): Promise<void> {
    this.#left = true
    const consumer = this.#consumer
    this.#consumer = undefined
    this.#set(new Set())
    await consumer?.disconnect().catch(() => {})
  }
}
