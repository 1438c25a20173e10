import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Hex } from '../../../src/base/index.ts'
import { walkLog } from '../../../src/cli/verify/log-walk.ts'
import { checking, checkThread, claimsOf } from '../../../src/cli/verify/thread-check.ts'
import { logProjectors } from '../../../src/continuations/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { clientOf, createTopics } from '../../../src/log/kafka/index.ts'
import { foldStream, stateHash } from '../../../src/projections/index.ts'
import { kcat } from '../clients/programs.ts'
import type { OwnBroker } from '../kafka/jars.ts'
import { Child } from '../processes/child.ts'
import { recordsOf, streamsOf } from '../processes/streams.ts'
import { type Ground, openGround } from './ground.ts'
import { kcatProducer } from './kcat-producer.ts'

/** A storm on a broker that is killed with the rest. Every process has a replica of its own, which outlives it. */
export async function kafkaGround(o: { broker: OwnBroker; prefix: string; folder: string }): Promise<Ground> {
  const { broker, prefix, folder } = o
  const { brokers } = broker
  await createTopics(clientOf({ brokers }), { prefix })
  const replica = (name: string) => join(folder, `replica-${name}.db`)
  return {
    folder,
    ledger: join(folder, 'ledger.jsonl'),
    address: (name) => ({ kafka: { brokers, prefix, replica: replica(name) } }),
    produce: async () => {
      if ('path' in (await kcat())) return kcatProducer({ brokers, topic: `${prefix}.results`, folder })
      const child = await Child.start('../chaos/producer.ts', { brokers, topic: `${prefix}.results` })
      return {
        language: 'kafkajs',
        // A send whose answer is lost is repeated.
        once: false,
        insert: async (key, value) => void (await child.must('send', { key, value: Buffer.from(value).toString('base64') })),
        close: () => child.kill(),
      }
    },
    // The session of a member ends after 10,000, the sign of life of an owner after 15,000.
    freezeMs: [17_000, 20_000],
    breakLog: () => broker.restart(),
    verify: async (violate) => {
      const names = readdirSync(folder).flatMap((name) => /^replica-(.*)\.db$/.exec(name)?.[1] ?? [])
      const hashes = new Map<string, string>()
      for (const name of [...names, 'new']) {
        const backend = await openGround({ kafka: { brokers, prefix, ...(name !== 'new' && { replica: replica(name) }) } })
        try {
          await backend.install(logProjectors())
          hashes.set(name, await hashOf(backend))
          if (name === 'new') await verifyAll(backend, violate)
        } finally {
          await backend.close()
        }
      }
      if (new Set(hashes.values()).size !== 1) violate(`replicas differ: ${JSON.stringify([...hashes])}`)
    },
  }
}

/** One hash of the states of all threads, folded from the first event. */
async function hashOf(backend: LogBackend): Promise<string> {
  const states: string[] = []
  for (const stream of streamsOf(backend).sort()) {
    const { head, state } = foldStream(await recordsOf(backend, stream))
    states.push(`${stream} ${head.version} ${head.hash} ${stateHash(state)}`)
  }
  return sha256Hex(new TextEncoder().encode(states.join('\n')))
}

/** As `threadlog verify --all`. */
async function verifyAll(backend: LogBackend, violate: (what: string) => void): Promise<void> {
  const check = await checking(backend, true)
  const claims = await claimsOf(backend)
  const { streams, refused } = await walkLog(backend, new AbortController().signal)
  for (const [stream, { version, reason }] of refused) violate(`verify: ${stream} version ${version}: ${reason}`)
  if (streams.size !== streamsOf(backend).length)
    violate(`verify: ${streams.size} threads in the log, ${streamsOf(backend).length} in the replica`)
  for (const stream of streams) {
    const { fault } = await checkThread(check, stream, claims.get(stream) ?? [])
    if (fault) violate(`verify: ${stream}: ${fault.code} ${fault.message}`)
  }
}
