import type { Producer } from 'kafkajs'
import { clientOf } from '../../src/log/kafka/index.ts'

export interface Outgoing {
  partition: number
  key: string
  value: Buffer
}

/** A plain producer that sends as the engine does: acks of all, one send in flight, and what arrives meanwhile goes with the next. */
export class GroupingProducer {
  readonly #producer: Producer
  readonly #topic: string
  #queue: { messages: readonly Outgoing[]; done: () => void; failed: (error: unknown) => void }[] = []
  #busy = false

  private constructor(producer: Producer, topic: string) {
    this.#producer = producer
    this.#topic = topic
  }

  static async connect(brokers: readonly string[], topic: string): Promise<GroupingProducer> {
    const partitioner =
      () =>
      ({ message }: { message: { partition?: number } }) =>
        message.partition as number
    const producer = clientOf({ brokers, clientId: 'bench' }).producer({
      createPartitioner: partitioner,
      allowAutoTopicCreation: false,
      retry: { retries: 0 },
    })
    await producer.connect()
    return new GroupingProducer(producer, topic)
  }

  /** Resolves when the messages are acknowledged. */
  send(...messages: Outgoing[]): Promise<void> {
    return new Promise((done, failed) => {
      this.#queue.push({ messages, done, failed })
      if (this.#busy) return
      this.#busy = true
      setImmediate(() => void this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#queue
      this.#queue = []
      const messages = group.flatMap((each) => each.messages)
      try {
        await this.#producer.send({ topic: this.#topic, acks: -1, messages })
        for (const { done } of group) done()
      } catch (error) {
        for (const { failed } of group) failed(error)
      }
    }
    this.#busy = false
  }

  close(): Promise<void> {
    return this.#producer.disconnect()
  }
}
