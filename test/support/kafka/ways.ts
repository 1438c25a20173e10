import { clientOf } from '../../../src/log/kafka/index.ts'
import { OwnBroker, withoutJars } from './jars.ts'

// Ways to have a broker, in this order: one that is there (KAFKA_BROKERS), a container, jars. KAFKA_BROKER=env|docker|jars allows one only.

export interface RunningBroker {
  way: Way
  brokers: string[]
  stop(): Promise<void>
}

/** `required`: tests that need it fail instead of being skipped. */
export interface NoBroker {
  reason: string
  required: boolean
}

const WAYS = ['env', 'docker', 'jars'] as const
type Way = (typeof WAYS)[number]

/** How each way gives a broker, or a reason why not. */
const HOW: Record<Way, () => Promise<Omit<RunningBroker, 'way'> | string>> = { env, docker, jars }

export async function findBroker(): Promise<RunningBroker | NoBroker> {
  const { KAFKA_BROKER: only, KAFKA_BROKERS: given, REQUIRE_KAFKA } = process.env
  if (only && !WAYS.includes(only as Way)) return { reason: `KAFKA_BROKER=${only} is none of ${WAYS.join(', ')}`, required: true }
  const reasons: string[] = []
  for (const way of WAYS) {
    if (only && only !== way) continue
    const found = await HOW[way]().catch((error: Error) => `${way}: ${error.message}`)
    if (typeof found !== 'string') return { way, ...found }
    reasons.push(found)
    // Who names a broker wants that one and no other.
    if (way === 'env' && given) break
  }
  return { reason: `no Kafka broker: ${reasons.join('; ')}`, required: REQUIRE_KAFKA === '1' || Boolean(only || given) }
}

async function env(): Promise<Omit<RunningBroker, 'way'> | string> {
  const brokers = (process.env['KAFKA_BROKERS'] ?? '').split(',').map((each) => each.trim())
  if (brokers.every((each) => each === '')) return 'KAFKA_BROKERS is not set'
  const admin = clientOf({ brokers }).admin()
  try {
    await admin.connect()
    await admin.describeCluster()
  } catch {
    return `none answers of KAFKA_BROKERS=${brokers}`
  } finally {
    await admin.disconnect().catch(() => {})
  }
  return { brokers, stop: async () => {} }
}

async function docker(): Promise<Omit<RunningBroker, 'way'> | string> {
  // Loaded only here: it is large, and asking for an engine is all that most runs do with it.
  const { startContainer, withoutDocker } = await import('./container.ts')
  return (await withoutDocker()) ?? startContainer()
}

async function jars(): Promise<Omit<RunningBroker, 'way'> | string> {
  const reason = withoutJars()
  if (reason !== undefined) return reason
  const own = await OwnBroker.start()
  return { brokers: [...own.brokers], stop: () => own.remove() }
}
