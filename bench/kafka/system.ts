import { partitionOf } from '../../src/log/index.ts'
import { DEFAULT_PARTITIONS } from '../../src/log/kafka/index.ts'
import type { Suspended } from '../closed-loop.ts'
import { EngineProcess } from '../engine-client.ts'
import { resultRecord } from '../threadlog-system.ts'
import { kafkaOptions } from './address.ts'
import { GroupingProducer } from './grouping.ts'

/** A threadlog engine on Kafka in its own process, given results by a producer of this process. */
export class KafkaSystem implements Suspended {
  readonly engine: EngineProcess
  readonly #producer: Promise<GroupingProducer>
  onResumed: Suspended['onResumed'] = () => {}

  constructor(log: string, profiled = false) {
    this.engine = new EngineProcess(log, profiled)
    this.engine.onAsked = (order, at) => this.onResumed(order, at)
    const { brokers = [], prefix = '' } = kafkaOptions(log) ?? {}
    this.#producer = GroupingProducer.connect(brokers, `${prefix}.results`)
    this.#producer.catch(() => {})
  }

  async connect(): Promise<void> {
    await this.engine.ready
    await this.#producer
  }

  async complete(order: number): Promise<void> {
    const key = this.engine.waits.get(order) ?? ''
    const value = Buffer.from(resultRecord(order, key))
    await (await this.#producer).send({ partition: partitionOf(key, DEFAULT_PARTITIONS), key, value })
  }

  async close(): Promise<void> {
    await this.engine.kill()
    await (await this.#producer).close()
  }
}
