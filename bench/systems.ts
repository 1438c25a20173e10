import type { Suspended } from './closed-loop.ts'
import type { EngineProcess } from './engine-client.ts'
import { kafkaOptions } from './kafka/address.ts'
import { KafkaSystem } from './kafka/system.ts'
import { ThreadlogSystem } from './threadlog-system.ts'

/** A threadlog engine and the way results come to it. */
export interface System extends Suspended {
  readonly engine: EngineProcess
  close(): Promise<void>
}

/** On Kafka results come by the topic, otherwise over HTTP. */
export const openSystem = (log: string, profiled = false): System =>
  kafkaOptions(log) ? new KafkaSystem(log, profiled) : new ThreadlogSystem(log, profiled)
