// Latency of one append, one after the other, where every answer of the broker comes late.
//   node bench/kafka/latency-process.ts <options as JSON>
import { openKafkaLog } from '../../src/log/kafka/index.ts'
import { now, quantile } from '../statistics.ts'
import { keyOf, lifeTemplates, nothingWritten, write } from '../templates.ts'
import { GroupingProducer } from './grouping.ts'

export interface LatencyOptions {
  brokers: readonly string[]
  prefix: string
  appends: number
}

const { brokers, prefix, appends } = JSON.parse(process.argv[2] ?? '{}') as LatencyOptions
const [first = []] = await lifeTemplates()
const log = await openKafkaLog({ brokers, prefix })

async function timed(n: number, work: (i: number) => Promise<void>): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < n; i++) {
    const begun = now()
    await work(i)
    times.push(now() - begun)
  }
  return times
}

const append = async (i: number) => {
  const { accepted } = await log.events.append(write(nothingWritten(keyOf(i)), first))
  if (!accepted) throw new Error(`append ${i} was refused`)
}
const WARM = 5
await timed(WARM, append)
const times = await timed(appends, (i) => append(WARM + i))
await log.close()

const raw = await GroupingProducer.connect(brokers, `${prefix}.content`)
const message = { partition: 0, key: 'k', value: Buffer.alloc(1_000, 97) }
await timed(WARM, () => raw.send(message))
const sends = await timed(appends, () => raw.send(message))
await raw.close()

process.send?.({
  per_second: null,
  p50_ms: quantile(times, 0.5),
  p99_ms: quantile(times, 0.99),
  rows_per_second: null,
  details: { raw_send_p50_ms: quantile(sends, 0.5), raw_send_p99_ms: quantile(sends, 0.99) },
})
process.disconnect()
