import type { TestProject } from 'vitest/node'
import { withoutJars } from './jars.ts'
import { findBroker, type NoBroker } from './ways.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The broker of this run. */
    kafka: { brokers: string[] } | NoBroker
    /** Why tests cannot start a broker of their own, if they cannot. */
    ownKafka: NoBroker | undefined
  }
}

/** Starts the broker of a run; vitest calls it once, and only if a `*.kafka.test.ts` is in the run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const begun = performance.now()
  const found = await findBroker()
  const reason = withoutJars()
  const required = process.env['REQUIRE_KAFKA'] === '1'
  project.provide('ownKafka', reason === undefined ? undefined : { reason: `no Kafka broker of its own: ${reason}`, required })
  if (!('brokers' in found)) {
    project.provide('kafka', found)
    console.log(found.reason)
    return async () => {}
  }
  project.provide('kafka', { brokers: found.brokers })
  console.log(`Kafka at ${found.brokers} (${found.way}), ${((performance.now() - begun) / 1000).toFixed(1)} s`)
  return () => found.stop()
}
