import { readFileSync } from 'node:fs'

export const SCRIPTS = new URL('../../../scripts/kafka/', import.meta.url)

/** The Kafka that tests run on where they start a broker themselves: `kafka.version` of `scripts/kafka/pom.xml`. */
export const KAFKA_VERSION = /<kafka\.version>(.+?)<\/kafka\.version>/.exec(
  readFileSync(new URL('pom.xml', SCRIPTS), 'utf8'),
)![1]!
