import { expect, test } from 'vitest'
import { openKafkaEvents } from '../../../src/log/kafka/events.ts'
import { runPortModel } from '../../../src/testing/index.ts'
import { Random } from '../../../src/testing/protocol/random.ts'
import { FaultyProxy, type Injected } from '../../support/kafka/faulty-proxy.ts'
import { brokers, describeKafka, kafkaPlace } from '../../support/kafka/index.ts'

// The protocol model on a real broker, through a network that loses, delays and repeats. More: PORT_MODEL_SCHEDULES=500; one again, from a
// seed on: PORT_MODEL_SEED=17 PORT_MODEL_SCHEDULES=1.

const SCHEDULES = Number(process.env['PORT_MODEL_SCHEDULES'] ?? 24)
const FIRST = Number(process.env['PORT_MODEL_SEED'] ?? 1)
const STEPS = 40
const FAULTS = { cutBefore: 4, cutAfter: 4, delayed: 50, repeated: 15 }

describeKafka('the protocol model on Kafka, through a bad network', () => {
  test(`${SCHEDULES} schedules from seed ${FIRST} on`, { timeout: 60_000 + SCHEDULES * 5_000 }, async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const injected: Injected = { cutBefore: 0, cutAfter: 0, delayed: 0, repeated: 0 }
    const random = new Random(FIRST)
    await using proxy = await FaultyProxy.start(brokers()[0]!, () => random.below(1_000_000) / 1_000_000)
    const { prefix } = place
    const spoilt = {
      brokers: brokers(),
      prefix,
      through: () => proxy.address,
    }
    const opened = await Promise.all([
      openKafkaEvents(spoilt),
      openKafkaEvents(spoilt),
      openKafkaEvents({ brokers: brokers(), prefix }),
    ])
    proxy.spoil(FAULTS)
    const [one, two, clear] = opened.map(({ log }) => log)
    let refused = 0
    try {
      for (let seed = FIRST; seed < FIRST + SCHEDULES; seed++) {
        const late: { close(): Promise<void> }[] = []
        const later = async () => {
          const events = await openKafkaEvents({ brokers: brokers(), prefix })
          late.push(events)
          return events.log
        }
        console.log(`seed ${seed}`)
        const options = {
          open: () => clear!,
          writer: (n: number) => (n % 2 === 0 ? one! : two!),
          later,
          seed,
          steps: STEPS,
          writers: 6,
          streams: 1,
        }
        const report = await runPortModel(options).finally(() => Promise.all(late.map((events) => events.close())))
        refused += report.commits.refused
      }
    } finally {
      Object.assign(injected, proxy.injected)
      proxy.heal()
      await Promise.all(opened.map((events) => events.close()))
    }
    console.log(JSON.stringify({ ...injected, refused }))
    if (SCHEDULES < 12) return
    expect(refused).toBeGreaterThan(0)
    for (const [fault, times] of Object.entries(injected)) expect([fault, times > 0]).toEqual([fault, true])
  })
})
