import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/base/index.ts'
import { decodeReceipt, externalIdKey, HELD_PER_ID, type Receipt, reservationStream } from '../../src/continuations/index.ts'
import { defineAgent, openThreadlog, type Threadlog } from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { countHeld } from '../../src/projections/index.ts'
import { calls, eventsOf, says } from './agents.ts'
import { gatedLog } from './gated-log.ts'
import { jobTool } from './submit-cases.ts'

// What holds of results that come before their wait, on every log: the cases of `early.unit` and `early.kafka`.

const agentWith = (submit: (args: { job: string }) => Promise<{ externalId: string }>) =>
  defineAgent({
    ...{ name: 'agent', revision: '1', tools: [jobTool(submit as never)] },
    model: scriptedModel((prompt) =>
      prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'job', { job: 'a' }]),
    ),
  })
const quick = () => agentWith(async ({ job }) => ({ externalId: `job-${job}` }))

const result = (ok: JsonValue = true, more: JsonObject = {}): JsonObject => ({
  provider: 'jobs',
  external_id: 'job-a',
  result: { ok },
  ...more,
})
const stream = reservationStream({
  kind: 'external_id',
  application: 'default',
  provider: 'jobs',
  key: externalIdKey('jobs', 'job-a'),
})
const held = (threads: Threadlog) =>
  countHeld(threads.backend.tables, { application: 'default', provider: 'jobs', limit: 100_000 })

/** Receipts of the topic, in the order in which they were published. */
export async function receiptsOf({ backend }: Threadlog): Promise<Receipt[]> {
  const receipts: Receipt[] = []
  for await (const batch of backend.topics.scan('receipts'))
    for (const { value } of batch) if (value.length > 0) receipts.push(decodeReceipt(value))
  return receipts
}

/** The final receipts, once there are so many: where a log is shared, the owner of each partition publishes them. */
async function finalReceipts(threads: Threadlog, count: number): Promise<Receipt[]> {
  const engine = await threads.serve({ sweepMs: 20 })
  for (;;) {
    const final = (await receiptsOf(threads)).filter((receipt) => receipt.final)
    if (final.length >= count) {
      await engine.close()
      return final
    }
    await delay(10)
  }
}

const told = (receipts: readonly Receipt[]) =>
  receipts.map(({ verdict, final, sequence }) => `${sequence} ${verdict}${final ? '' : ' …'}`)

export const earlyCases: Record<string, (log: LogBackend) => Promise<void>> = {
  'row 137: a provider that answers inside the submission is heard, and the answer is given once': async (log) => {
    let threads: Threadlog
    const verdicts: string[] = []
    const agent = agentWith(async () => {
      for (const commandId of ['one', 'one', 'two']) verdicts.push((await threads.submit(result(), { commandId })).verdict)
      return { externalId: 'job-a' }
    })
    threads = await openThreadlog({ log, agents: [agent] })
    await threads.run(agent, { thread: 't_1', input: 'go' })
    expect(verdicts).toEqual(['held', 'held', 'held'])
    expect((await threads.run(agent, { thread: 't_1' })).output).toBe('done')
    // Each of the two has one final verdict, and the caller who asks again gets the same.
    expect(told(await finalReceipts(threads, 2))).toEqual(['2 accepted', '2 duplicate'])
    expect((await threads.submit(result(), { commandId: 'one' })).verdict).toBe('accepted')
    expect((await threads.submit(result(), { commandId: 'two' })).verdict).toBe('duplicate')
    expect((await threads.submit(result(false), { commandId: 'three' })).verdict).toBe('conflict')
    expect(held(threads)).toBe(0)
    const types = (await eventsOf(threads, 't_1')).map(({ event }) => event?.type)
    expect(types.filter((type) => type === 'continuation.completed/1')).toHaveLength(1)
    await threads.close()
  },

  'row 36: whenever a result comes around the moment of its wait, it is taken': async (log) => {
    const agent = quick()
    const threads = await openThreadlog({ log, agents: [agent] })
    const engine = await threads.serve({ sweepMs: 50 })
    for (let i = 0; i < 12; i++) {
      const id = `job-${i}`
      const one = defineAgent({
        ...{ name: 'agent', revision: '1', tools: agent.tools.values().toArray() },
        model: scriptedModel((prompt) =>
          prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'job', { job: `${i}` }]),
        ),
      })
      const running = threads.run(one, { thread: `t_${i}`, input: 'go' })
      await delay(i * 4)
      const receipt = await threads.submit({ provider: 'jobs', external_id: id, result: { ok: true } })
      expect(['held', 'accepted']).toContain(receipt.verdict)
      await running
      while ((await threads.thread(`t_${i}`).state()).messageHistory.length < 3) {
        // The engine is as fast.
        await threads.run(one, { thread: `t_${i}` }).catch(() => {})
        await delay(5)
      }
    }
    const final = await finalReceipts(threads, 12)
    expect(final.filter(({ verdict }) => verdict !== 'accepted')).toEqual([])
    expect(new Set(final.map(({ external_id }) => external_id)).size).toBe(12)
    await engine.close()
    await threads.close()
  },

  'a result that comes between the reservation and the suspension is held and then taken': async (log) => {
    const agent = quick()
    const gate = gatedLog(log, 'run.suspended/1')
    const threads = await openThreadlog({ log: gate.log, agents: [agent] })
    const running = threads.run(agent, { thread: 't_1', input: 'go' })
    await gate.reached
    await using outside = await openThreadlog({ log, agents: [quick()] })
    expect((await outside.submit(result())).verdict).toBe('held')
    gate.open()
    await running
    expect((await threads.run(agent, { thread: 't_1' })).output).toBe('done')
    await threads.close()
  },

  'what nobody delivered is found by the sweep of an engine, and refused as it would have been': async (log) => {
    const agent = quick()
    const before = await openThreadlog({ log, agents: [agent] })
    expect((await before.submit(result('no boolean'))).verdict).toBe('held')
    expect((await before.submit(result(true, { schema_id: 'another' }))).verdict).toBe('held')
    expect((await before.submit(result(true, { result_id: 'r1' }))).verdict).toBe('held')
    expect((await before.submit(result(true, { result_id: 'r1' }))).verdict).toBe('held')
    expect(held(before)).toBe(3)
    await before.close()
    // A process without the tool suspends for nobody; the wait is there, and what is held is not looked at.
    const plain = await openThreadlog({ log })
    await plain.run(agent, { thread: 't_1', input: 'go' })
    await plain.close()
    const threads = await openThreadlog({ log, agents: [agent] })
    const engine = await threads.serve({ sweepMs: 20 })
    while (held(threads) > 0) await delay(10)
    expect(told(await finalReceipts(threads, 3))).toEqual(['2 invalid', '2 schema-mismatch', '2 accepted'])
    await engine.close()
    await threads.close()
  },

  'a record of the results topic gets a receipt that is not final, and one that is': async (log) => {
    const agent = quick()
    const threads = await openThreadlog({ log, agents: [agent] })
    const engine = await threads.serve({ sweepMs: 20 })
    await log.topics.publish('results', [{ key: 'job-a', value: new TextEncoder().encode(JSON.stringify(result())) }])
    while ((await receiptsOf(threads)).length === 0) await delay(10)
    expect(told(await receiptsOf(threads))).toEqual(['1 held …'])
    const run = await threads.start({ agent: 'agent', thread: 't_1', input: 'go' })
    expect((await run.result()).output).toBe('done')
    while ((await receiptsOf(threads)).length === 1) await delay(10)
    const receipts = await receiptsOf(threads)
    expect(told(receipts)).toEqual(['1 held …', '2 accepted'])
    expect(receipts[1]?.source).toEqual(receipts[0]?.source)
    await engine.close()
    await threads.close()
  },

  'a host that suspends finds the result that was there before': async (log) => {
    const threads = await openThreadlog({ log, earlyResults: { providers: ['crm'] } })
    expect((await threads.submit({ provider: 'crm', external_id: 'case-1', result: 7 })).verdict).toBe('held')
    const provider = threads.continuations('crm')
    const store = threads.continuationStore()
    const own = { userId: 'u', sessionId: 's', runId: 'r' }
    await store.beginRun({ scope: { ...own, applicationId: 'default' }, framework: 'langgraph' })
    const record = await provider.suspend({ ...own, externalId: 'case-1', capability: 'crm.case', schemaId: 'crm/v1' })
    const found = await provider.get({ ...own, continuationId: record.continuationId })
    expect(found).toMatchObject({ status: 'completed', result: 7 })
    expect(told(await finalReceipts(threads, 1))).toEqual(['2 accepted'])
    await threads.close()
  },

  'nobody is held for who picks no ids, is another application, or names a wait; the operator decides for hosts': async (log) => {
    const threads = await openThreadlog({ log, agents: [quick()], earlyResults: { providers: ['crm'] } })
    const verdict = async (record: object) => (await threads.submit(record as never)).verdict
    expect(await verdict({ provider: 'strangers', external_id: 'x', result: 1 })).toBe('unknown')
    expect(await verdict({ provider: 'jobs', continuation_id: 'x', result: 1 })).toBe('unknown')
    expect(await verdict({ provider: 'crm', external_id: 'x', result: 1 })).toBe('held')
    await threads.close()
  },

  'no more are held than was agreed, of one id and of one provider, and what is refused for that may come again': async (log) => {
    const threads = await openThreadlog({ log, agents: [quick()], earlyResults: { perProvider: HELD_PER_ID + 2 } })
    const verdict = async (id: string, ok: JsonValue) =>
      (await threads.submit({ provider: 'jobs', external_id: id, result: { ok } })).verdict
    for (let i = 0; i < HELD_PER_ID; i++) expect(await verdict('job-a', i)).toBe('held')
    expect(await verdict('job-a', 'more')).toBe('held-full')
    expect(await verdict('job-b', 1)).toBe('held')
    expect(await verdict('job-c', 1)).toBe('held')
    const full = await threads.submit({ provider: 'jobs', external_id: 'job-d', result: { ok: true } })
    expect(full).toMatchObject({ verdict: 'held-full', final: true, code: 'held_full' })
    await threads.close()
  },

  'what is held too long is unknown for good, told once, and said again to who asks again': async (log) => {
    const threads = await openThreadlog({ log, agents: [quick()], earlyResults: { keepMs: 1 } })
    const ask = () => threads.submit(result(), { commandId: 'one' })
    expect((await ask()).verdict).toBe('held')
    const engine = await threads.serve({ sweepMs: 20 })
    while (held(threads) > 0) await delay(10)
    expect(await ask()).toMatchObject({ verdict: 'unknown', final: true, code: 'hold_expired' })
    expect(told((await finalReceipts(threads, 2)).filter(({ sequence }) => sequence === 2))).toEqual(['2 unknown'])
    await engine.close()
    await threads.close()
  },

  'row 91: a held result that is delivered twice, the first time with its acknowledgement lost, is taken once': async (log) => {
    const agent = quick()
    const threads = await openThreadlog({ log, agents: [agent] })
    expect((await threads.submit(result(), { commandId: 'one' })).verdict).toBe('held')
    await threads.close()
    // The outcome lands in the thread, and the process dies before it says so where the result is held.
    const gate = gatedLog(log, 'reservation.settled/1')
    const dying = await openThreadlog({ log: gate.log, agents: [agent] })
    void dying.run(agent, { thread: 't_1', input: 'go' }).catch(() => {})
    await gate.reached
    const next = await openThreadlog({ log, agents: [agent] })
    const engine = await next.serve({ sweepMs: 20 })
    while (held(next) > 0) await delay(10)
    gate.open()
    await delay(50)
    const types = (await eventsOf(next, 't_1')).map(({ event }) => event?.type)
    expect(types.filter((type) => type === 'continuation.completed/1')).toHaveLength(1)
    expect(told(await finalReceipts(next, 1))).toEqual(['2 accepted'])
    expect((await next.store.load(stream)).early?.held).toEqual([])
    await engine.close()
    await dying.close()
    await next.close()
  },
}
