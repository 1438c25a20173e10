import type { Kafka, Producer } from 'kafkajs'
import { type Clock, isJsonObject, parseJson, systemIds } from '../../base/index.ts'
import type { Owners } from '../ports.ts'
import { isGone, thisProcess } from '../store/index.ts'
import { CLOSE_MS, producerOf, within } from './connection.ts'
import type { DirectReader, Fetched } from './direct.ts'
import { translate } from './errors.ts'

/** Milliseconds between two signs of life; after which an owner without one is gone, clocks of brokers being up to 5 s apart. */
const RENEW_MS = 2_000
const EXPIRE_MS = 15_000
/** An answer may be this old. */
const FRESH_MS = 1_000
/** Milliseconds for which this process must have been able to write its own signs before it says that others no longer do. */
const STEADY_MS = 6_000
const READ = { maxWaitMs: 0, maxBytes: 1 << 20, committed: false }

interface Sign {
  owner: string
  pid: number
  host: string
  startTime: string
  /** Set by an owner that closes: its work is free at once. */
  gone: boolean
  time: number
}

export interface KafkaOwnersOptions {
  kafka: Kafka
  reader: DirectReader
  /** Full name of the topic of commands; signs of life go to its partition 0. They carry no truth. */
  topic: string
  clock: Clock
  onTrouble?(error: unknown): void
}

/** Owners of a log on Kafka: each process tells every 2 s that it lives; whoever wants to know reads the last seconds of that. */
export class KafkaOwners implements Owners {
  readonly self = systemIds.token()
  readonly #o: KafkaOwnersOptions
  readonly #process = thisProcess()
  #producer: Producer | undefined
  #timer: NodeJS.Timeout | undefined
  #telling: Promise<void> | undefined
  /** Since when (`performance.now`) each sign of this process was written in time. */
  #steady = 0
  #disturbed = false
  #seen: { at: number; signs: Promise<Map<string, Sign>> } | undefined

  constructor(options: KafkaOwnersOptions) {
    this.#o = options
  }

  /** Registers this process and keeps it alive. */
  async register(): Promise<void> {
    await this.#tell(false)
    this.#steady = performance.now()
    this.#timer = setInterval(() => (this.#telling ??= this.#renew()), RENEW_MS).unref()
  }

  /** A sign that fails is made good by the next. */
  async #renew(): Promise<void> {
    const began = performance.now()
    try {
      await this.#tell(false)
    } catch (error) {
      this.#steady = Number.POSITIVE_INFINITY
      this.#o.onTrouble?.(error)
    } finally {
      const now = performance.now()
      if (now - began > RENEW_MS || this.#steady > now) {
        this.#steady = now
        this.#disturbed = true
      }
      this.#telling = undefined
    }
  }

  /**
   * An owner that could not write its signs, because the cluster was away for all, is not dead: it gets time to write the next. One
   * without any is gone for long, unless this process has seen the cluster fail.
   */
  async isDead(owner: string): Promise<boolean> {
    if (owner === this.self) return false
    const sign = await this.#signOf(owner)
    if (sign && (sign.gone || isGone(sign))) return true
    const steady = performance.now() - this.#steady > STEADY_MS
    if (sign === undefined) return steady || !this.#disturbed
    return steady && sign.time + EXPIRE_MS <= this.#o.clock.now()
  }

  async isProvenDead(owner: string): Promise<boolean> {
    if (owner === this.self) return false
    const sign = await this.#signOf(owner)
    return sign !== undefined && isGone(sign)
  }

  /** Owners whose last sign is young and who have not said that they close. */
  async alive(): Promise<{ id: string; pid: number; ageMs: number }[]> {
    const now = this.#o.clock.now()
    return [...(await this.#signs()).values()]
      .filter((sign) => !sign.gone && !isGone(sign) && sign.time + EXPIRE_MS > now)
      .map(({ owner, pid, time }) => ({ id: owner, pid, ageMs: Math.max(0, now - time) }))
  }

  async close(): Promise<void> {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    const last = async () => {
      await this.#tell(true)
      await this.#producer?.disconnect()
    }
    await within(CLOSE_MS, last())
  }

  async #tell(gone: boolean): Promise<void> {
    const { pid, host, startTime } = this.#process
    const value = JSON.stringify({ owner: this.self, pid, host, start_time: startTime, gone })
    try {
      this.#producer ??= await this.#connect()
      await this.#producer.send({
        topic: this.#o.topic,
        acks: -1,
        messages: [{ partition: 0, key: `owner:${this.self}`, value }],
      })
    } catch (error) {
      void this.#producer?.disconnect().catch(() => {})
      this.#producer = undefined
      throw translate(error, this.#o.topic)
    }
  }

  async #connect(): Promise<Producer> {
    const producer = producerOf(this.#o.kafka, {
      idempotent: false,
      retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 8 },
    })
    await producer.connect()
    return producer
  }

  /** An owner may have registered since the last look, so only a new look says that it has given no sign. */
  async #signOf(owner: string): Promise<Sign | undefined> {
    const asked = performance.now()
    const known = (await this.#signs()).get(owner)
    return known ?? (await this.#signs(asked)).get(owner)
  }

  /** @param since a look must have begun then or later; default: a moment ago */
  #signs(since = performance.now() - FRESH_MS): Promise<Map<string, Sign>> {
    const now = performance.now()
    if (!this.#seen || this.#seen.at < since) {
      const signs = this.#read()
      signs.catch(() => {
        this.#seen = undefined
      })
      this.#seen = { at: now, signs }
    }
    return this.#seen.signs
  }

  /** The last sign of each owner since a moment at which all that live have given one. */
  async #read(): Promise<Map<string, Sign>> {
    const { reader, topic, clock } = this.#o
    try {
      const since = { since: clock.now() - 2 * EXPIRE_MS }
      const [end, from] = await reader.patiently(async () => [
        (await reader.offsets(topic, [0], 'end')).get(0)!,
        (await reader.offsets(topic, [0], since)).get(0)!,
      ])
      let offset = from!
      const signs = new Map<string, Sign>()
      while (offset >= 0n && offset < end) {
        const at = offset
        const batch = await reader.patiently(() => this.#fetch(at))
        for (const { value, time } of batch.records) {
          const sign = signOf(value, time)
          if (sign) signs.set(sign.owner, sign)
        }
        offset = batch.next
      }
      return signs
    } catch (error) {
      throw translate(error, topic)
    }
  }

  /** What is not read must not be taken for what is not there: its owner would count as dead. */
  async #fetch(offset: bigint): Promise<Fetched> {
    const { reader, topic } = this.#o
    const batch = await reader.fetchOne({ topic, partition: 0, offset }, READ)
    if (batch.next > offset) return batch
    throw Object.assign(new Error('the signs of life were not read'), { type: 'LEADER_NOT_AVAILABLE' })
  }
}

function signOf(value: Uint8Array | null, time: number): Sign | undefined {
  if (!value) return undefined
  try {
    const sign = parseJson(value)
    if (!isJsonObject(sign)) return undefined
    const { owner, pid, host, start_time: startTime, gone } = sign
    if (typeof owner !== 'string' || typeof pid !== 'number' || typeof host !== 'string' || typeof startTime !== 'string')
      return undefined
    return { owner, pid, host, startTime, gone: gone === true, time }
  } catch {
    // Commands of other kinds, or of others.
    return undefined
  }
}
