import { beforeEach, describe, inject } from 'vitest'
import type {} from './global-setup.ts'
import { OwnBroker, type OwnBrokerOptions } from './jars.ts'
import { type KafkaPlace, type KafkaPlaceOptions, kafkaPlace as placeAt } from './place.ts'
import type { NoBroker } from './ways.ts'

// What `*.kafka.test.ts` use. The broker of the run is shared: each test takes a place of its own on it.

export type { KafkaPlace, OwnBroker, OwnBrokerOptions }

/** `describe` for tests on the broker of the run: without one they are skipped, or fail where one is required. */
export const describeKafka = (name: string, tests: () => void): void => needing(absence(inject('kafka')), name, tests)

/** `describe` for tests that start brokers of their own. */
export const describeOwnKafka = (name: string, tests: () => void): void => needing(inject('ownKafka'), name, tests)

/** Addresses of the broker of the run. */
export function brokers(): string[] {
  const found = inject('kafka')
  if ('brokers' in found) return found.brokers
  throw new Error(found.reason)
}

/** A log of its own on the broker of the run, or on `brokers`. Use it with `await using`. */
export const kafkaPlace = (options: Partial<KafkaPlaceOptions> = {}): Promise<KafkaPlace> =>
  placeAt({ ...options, brokers: options.brokers ?? brokers() })

/** A broker that may be killed, frozen and restarted. Use it with `await using`. */
export const ownBroker = (options?: OwnBrokerOptions): Promise<OwnBroker> => OwnBroker.start(options)

const absence = (found: { brokers: string[] } | NoBroker): NoBroker | undefined => ('brokers' in found ? undefined : found)

function needing(missing: NoBroker | undefined, name: string, tests: () => void): void {
  if (missing && !missing.required) {
    describe.skip(`${name} [${missing.reason}]`, tests)
    return
  }
  describe(name, () => {
    if (missing)
      beforeEach(() => {
        throw new Error(missing.reason)
      })
    tests()
  })
}
