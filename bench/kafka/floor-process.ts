// Records of one size to a topic of several partitions through one plain producer, many at a time, grouped as the engine groups its commits.
//   node bench/kafka/floor-process.ts <options as JSON>
import { partitionOf } from '../../src/log/index.ts'
import { now, pool, quantile } from '../statistics.ts'
import { GroupingProducer, type Outgoing } from './grouping.ts'

export interface KafkaFloorOptions {
  brokers: readonly string[]
  /** A topic that nobody reads. */
  topic: string
  partitions: number
  records: number
  recordBytes: number
  inFlight: number
}

const { brokers, topic, partitions, records, recordBytes, inFlight } = JSON.parse(process.argv[2] ?? '{}') as KafkaFloorOptions
/** Records of one commit in the second figure. */
const COMMIT = 10
const producer = await GroupingProducer.connect(brokers, topic)
const value = Buffer.alloc(recordBytes, 97)
const recordsOf = (unit: number, count: number): Outgoing[] => {
  const key = `stream-${unit}`.padEnd(64, '0')
  return Array.from({ length: count }, () => ({ partition: partitionOf(key, partitions), key, value }))
}

async function measure(units: number, count: number) {
  await pool(Math.min(500, units), inFlight, (i) => producer.send(...recordsOf(i, count)))
  const latencies: number[] = []
  const begun = now()
  await pool(units, inFlight, async (i) => {
    const sent = now()
    await producer.send(...recordsOf(i, count))
    latencies.push(now() - sent)
  })
  return { perSecond: (units * count) / ((now() - begun) / 1_000), latencies }
}

const single = await measure(records, 1)
const commits = await measure(Math.ceil(records / COMMIT), COMMIT)
await producer.close()
process.send?.({
  per_second: single.perSecond,
  p50_ms: quantile(single.latencies, 0.5),
  p99_ms: quantile(single.latencies, 0.99),
  rows_per_second: single.perSecond,
  details: {
    row_bytes: recordBytes,
    in_tens_per_second: commits.perSecond,
    in_tens_p50_ms: quantile(commits.latencies, 0.5),
  },
})
process.disconnect()
