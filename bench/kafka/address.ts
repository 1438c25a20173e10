import type { KafkaLogOptions } from '../../src/log/kafka/index.ts'

/** `kafka://host:port[,host:port]/prefix`, with the file of the replica behind `#`. */
export const addressOf = (brokers: readonly string[], prefix: string, replica: string): string =>
  `kafka://${brokers.join(',')}/${prefix}#${replica}`

/** The other way round; undefined for a log elsewhere. */
export function kafkaOptions(address: string): (KafkaLogOptions & { prefix: string }) | undefined {
  const [, brokers, prefix, replica] = /^kafka:\/\/([^/#]+)\/([^/#]+)#(.+)$/.exec(address) ?? []
  return brokers && prefix && replica ? { brokers: brokers.split(','), prefix, replica } : undefined
}
