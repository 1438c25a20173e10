import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { ContinuationRuntime, type Resumption } from '../../src/continuations/index.ts'
import { openThreadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import type { LogCases } from './cases-on-logs.ts'

// What holds of a host's tool that stays in memory until its outcome is here (continuation spec §3.2), on every log.

const own = { userId: 'ann', sessionId: 'session', runId: 'run-1' }

const validate = (value: unknown) => value

/** One process of a host. */
async function replica(log: LogBackend) {
  const threads = await openThreadlog({ log, application: 'shop' })
  const resumed: Resumption[] = []
  const [store, provider] = [threads.continuationStore(), threads.continuations('jobs')]
  const resume = { leaseMs: 60_000, canResume: () => true, resume: async (o: Resumption) => void resumed.push(o) }
  const runtime = new ContinuationRuntime({ store, provider, resume })
  runtime.register('ship/v1', validate)
  return { threads, store, provider, runtime, resumed }
}

async function attached(log: LogBackend) {
  const [a, b] = [await replica(log), await replica(log)]
  await a.store.beginRun({ scope: { ...own, applicationId: 'shop' }, framework: 'adk' })
  const wait = await a.runtime.suspend({ ...own, externalId: 'job-1', capability: 'ship', schemaId: 'ship/v1', validate })
  const used: unknown[] = []
  const frame = a.runtime.attach(wait, ({ record }) => void used.push(record.result), { pollMs: 20 })
  frame.catch(() => {})
  while (!(await a.provider.get(wait))?.ready) await delay(5)
  const close = async () => {
    await a.threads.close()
    await b.threads.close()
  }
  return { a, b, wait, used, frame, close }
}

export const attachCases: LogCases = {
  'it takes its outcome, and no driver is asked': async (log) => {
    const { a, b, used, frame, wait, close } = await attached(log)
    await a.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await frame
    expect([used, a.resumed, b.resumed]).toEqual([['sent'], [], []])
    expect((await b.provider.get(wait))?.status).toBe('claimed')
    await close()
  },

  'an outcome that another process brings goes to one of the two, and the other lets go': async (log) => {
    const { a, b, used, frame, close } = await attached(log)
    await b.runtime.complete({ externalId: 'job-1', result: 'sent' })
    await b.runtime.idle()
    const mine = await frame.then(
      () => 'used',
      (error: { reason?: string }) => error.reason,
    )
    expect([mine, used.length, b.resumed.length, a.resumed.length]).toEqual(
      mine === 'used' ? ['used', 1, 0, 0] : ['already_claimed', 0, 1, 0],
    )
    await close()
  },
}
