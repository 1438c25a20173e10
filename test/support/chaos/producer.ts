import { setTimeout as delay } from 'node:timers/promises'
import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { options, serve } from '../processes/child.ts'

// Writes results as any program does, with a client of its own: `producer.ts '{"brokers": […], "topic": …}'`.

const o = options<{ brokers: string[]; topic: string }>()
const kafka = new Kafka({ brokers: o.brokers, logLevel: logLevel.NOTHING, requestTimeout: 5_000, retry: { retries: 2 } })
let connected: Promise<Producer> | undefined

async function connect(): Promise<Producer> {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, allowAutoTopicCreation: false })
  await producer.connect()
  return producer
}

serve({
  send: async ({ key, value }: { key: string; value: string }) => {
    for (;;) {
      connected ??= connect()
      const mine = connected
      try {
        await (await mine).send({ topic: o.topic, acks: -1, messages: [{ key, value: Buffer.from(value, 'base64') }] })
        return null
      } catch {
        if (connected === mine) connected = undefined
        void mine.then((producer) => producer.disconnect()).catch(() => {})
        await delay(100)
      }
    }
  },
})
