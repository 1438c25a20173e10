import { DEFAULT_PARTITIONS } from '../../src/log/kafka/index.ts'
import type { Logs } from '../logs.ts'
import { measuredBy } from '../measured-by.ts'
import type { Measured } from '../resume.ts'
import type { BenchBroker } from './broker.ts'
import type { KafkaFloorOptions } from './floor-process.ts'
import type { LatencyOptions } from './latency-process.ts'

/** Raw grouped records in a process of their own: what the broker and the client give at most. */
export async function measureKafkaFloor(
  broker: BenchBroker,
  o: Pick<KafkaFloorOptions, 'records' | 'recordBytes' | 'inFlight'>,
): Promise<Measured> {
  const topic = `${await broker.newLog()}.events`
  const options: KafkaFloorOptions = { ...o, brokers: broker.brokers, topic, partitions: DEFAULT_PARTITIONS }
  return measuredBy('kafka/floor-process.ts', options)
}

/** Appends measured at each delay. */
const APPENDS = 40

/** Appends one after the other, with every answer of the broker late by `delayMs`. */
export async function measureLatency({ broker }: Logs, delayMs: number): Promise<Measured> {
  if (!broker) throw new Error('latency needs --log kafka')
  const prefix = await broker.newLog()
  broker.proxy.delayMs = delayMs
  const options: LatencyOptions = { brokers: broker.delayed, prefix, appends: APPENDS }
  const measured = await measuredBy('kafka/latency-process.ts', options)
  return { ...measured, details: { injected_ms: delayMs, ...measured.details } }
}
