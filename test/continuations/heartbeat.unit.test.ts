import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { extendedDeadline } from '../../src/continuations/extend.ts'
import { ContinuationProvider, type ContinuationStore, expireThread } from '../../src/continuations/index.ts'
import { defineAgent, externalTool, openThreadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import type { Wait } from '../../src/projections/index.ts'
import { calls, says, typesOf } from '../support/agents.ts'
import { places } from '../support/processes/place.ts'
import { setClock } from '../support/set-clock.ts'

const place = places()
const waitOf = (o: { from: number; given: number | null; deadline: number | null }): Wait =>
  ({ createdAt: o.from, item: { deadline: o.given === null ? null : o.from + o.given }, deadline: o.deadline }) as Wait

describe('the deadline after a heartbeat', () => {
  test.each([
    ['the whole time again', 1_000, 500, undefined, 1_500],
    ['as much as was asked for', 1_000, 950, 200, 1_150],
    ['no more than the whole time', 1_000, 500, 99_999, 1_500],
    ['nothing, if a tenth is not won', 1_000, 99, undefined, 1_000],
    ['nothing, if less was asked for than is left', 1_000, 500, 100, 1_000],
    ['the end of 100 times its time', 99_500, 99_400, undefined, 100_000],
    ['nothing more at that end', 100_000, 99_990, undefined, 100_000],
  ])('gives %s', (_, deadline, now, ms, then) => {
    expect(extendedDeadline(waitOf({ from: 0, given: 1_000, deadline }), now, ms)).toBe(then)
  })

  test('of a wait without one is none', () => {
    expect(extendedDeadline(waitOf({ from: 0, given: null, deadline: null }), 5)).toBeNull()
  })

  test('moves on, within its bounds, and at most 1,000 times', () => {
    const steps = fc.array(fc.tuple(fc.nat(40), fc.option(fc.integer({ min: 1, max: 2_000 }), { nil: undefined })), {
      minLength: 1,
      maxLength: 3_000,
      size: 'max',
    })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), steps, (given, beats) => {
        let [deadline, now, moved] = [given, 0, 0]
        for (const [passed, ms] of beats) {
          now += passed
          const next = extendedDeadline(waitOf({ from: 0, given, deadline }), now, ms) as number
          expect(next).toBeGreaterThanOrEqual(deadline)
          expect(next).toBeLessThanOrEqual(Math.min(100 * given, Math.max(deadline, now + given)))
          if (next !== deadline) moved++
          deadline = next
        }
        expect(moved).toBeLessThanOrEqual(1_000)
      }),
      { numRuns: 50 },
    )
  })
})

describe.each(['memory', 'sqlite'] as const)('heartbeats on %s', (kind) => {
  const open = async () => {
    const clock = setClock()
    const far = externalTool({ name: 'far', description: 'far', input: z.object({}), provider: 'outside', deadlineMs: 60_000 })
    const model = scriptedModel((prompt) => (prompt.some((m) => m.role === 'tool') ? says('done') : calls(['c1', 'far', {}])))
    const agent = defineAgent({ name: 'agent', revision: '1', model, tools: [far] })
    const threads = await openThreadlog({ log: kind === 'memory' ? 'memory' : place().log, clock, agents: [agent] })
    return { clock, threads, agent, outside: threads.continuations('outside') }
  }

  test('keep a long job of an own run from expiring; once it is over, they are refused with the reason', async () => {
    const { clock, threads, agent, outside } = await open()
    const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
    const externalId = waits[0]?.externalId ?? ''
    for (let beat = 0; beat < 5; beat++) {
      clock.pass(50_000)
      expect((await outside.heartbeat({ externalId })).expiresAt).toBeGreaterThan(clock.now() + 59_000)
      // Many beats at once are one event.
      await Promise.all(Array.from({ length: 8 }, () => outside.heartbeat({ externalId })))
      expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('suspended')
    }
    expect((await typesOf(threads, 'thread_a')).filter((type) => type === 'continuation.extended')).toHaveLength(5)
    const [listed] = await outside.listPending()
    expect([listed?.record.revision, (listed?.expiresAt ?? 0) > clock.now() + 50_000]).toEqual([1, true])
    for await (const { deadline } of threads.waits()) expect(deadline).toBe(listed?.expiresAt)
    clock.pass(61_000)
    expect((await threads.run(agent, { thread: 'thread_a' })).status).toBe('completed')
    await expect(outside.heartbeat({ externalId })).rejects.toMatchObject({ reason: 'expired' })
    await expect(outside.heartbeat({ externalId: 'nobody' })).rejects.toMatchObject({ reason: 'unknown' })
    await threads.close()
  })

  test('revive what is overdue as long as nobody has recorded it as expired: the log decides', async () => {
    const { clock, threads, agent, outside } = await open()
    const { waits } = await threads.run(agent, { thread: 'thread_a', input: 'go' })
    const externalId = waits[0]?.externalId ?? ''
    const { stream } = threads.thread('thread_a')
    clock.pass(70_000)
    await outside.heartbeat({ externalId, ms: 30_000 })
    expect(await expireThread(threads.store, stream)).toBe(0)
    clock.pass(30_000)
    expect(await expireThread(threads.store, stream)).toBe(1)
    await threads.close()
  })

  test('of a host: its wait keeps its revision, so whoever arms, cancels or claims by it is not disturbed', async () => {
    const { clock, threads } = await open()
    const jobs = threads.continuations('jobs', { deadlineMs: 1_000 })
    const own = { userId: 'ann', sessionId: 's-1', runId: 'run-1' }
    await threads.continuationStore().beginRun({ scope: { applicationId: 'default', ...own }, framework: 'adk' })
    const record = await jobs.suspend({ ...own, externalId: 'job-1', capability: 'job.run', schemaId: 'job/v1' })
    clock.pass(900)
    const { expiresAt } = await jobs.heartbeat({ externalId: 'job-1' })
    expect(expiresAt).toBeGreaterThan(clock.now() + 900)
    expect(await jobs.arm(record)).toMatchObject({ revision: 1, ready: true })
    expect((await jobs.lookup({ externalId: 'job-1' }))?.expiresAt).toBe(expiresAt)
    for (const ms of [0, -1, 1.5])
      await expect(jobs.heartbeat({ externalId: 'job-1', ms })).rejects.toMatchObject({ code: 'invalid_argument', path: 'ms' })
    await expect(jobs.heartbeat({ externalId: ' ' })).rejects.toMatchObject({ code: 'invalid_argument', path: 'externalId' })
    await threads.close()
  })
})

test('a store that knows no heartbeats says so', async () => {
  const provider = new ContinuationProvider({ store: {} as ContinuationStore, applicationId: 'a', provider: 'jobs' })
  await expect(provider.heartbeat({ externalId: 'job-1' })).rejects.toMatchObject({ code: 'heartbeat_unsupported' })
})
