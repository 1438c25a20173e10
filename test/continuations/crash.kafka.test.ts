import { crashCases, type Scene } from '../support/crash-cases.ts'
import { describeKafka, kafkaPlace } from '../support/kafka/index.ts'
import { Child } from '../support/processes/child.ts'

describeKafka('on Kafka, the host a process with a replica of its own that SIGKILL ends', () => {
  crashCases(async (): Promise<Scene> => {
    const place = await kafkaPlace({ partitions: 2 })
    return {
      log: await place.open(),
      host: async (gate) => {
        const { brokers, prefix } = place
        const child = await Child.start('host.ts', { address: { kafka: { brokers, prefix } }, gate })
        return Object.assign(child, { die: () => child.kill() })
      },
      close: () => place.remove(),
    }
  })
})
