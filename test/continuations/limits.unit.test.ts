import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type AuditRecord,
  ContinuationProvider,
  externalTool,
  openThreadlog,
  ResumeArtifact,
  submissionKey,
} from '../../src/index.ts'
import { agentOf, calls } from '../support/agents.ts'

const scope = { applicationId: 'shop', userId: 'ann', sessionId: 'first', runId: 'run-1' }

async function waiting() {
  const threads = await openThreadlog({ application: 'shop' })
  const audit: AuditRecord[] = []
  const store = threads.continuationStore({ audit: (line) => audit.push(line) })
  const bank = new ContinuationProvider({ store, applicationId: 'shop', provider: 'bank' })
  await store.beginRun({ scope, framework: 'adk' })
  const at = { ...scope, externalId: 'job-1', schemaId: 'result/v1' }
  const record = await bank.suspend({ ...at, capability: 'pay' })
  const complete = (result: unknown) => bank.complete({ ...at, result, validate: (value) => value })
  return { threads, store, bank, audit, record, complete }
}

describe('W13: a result', () => {
  it('above the limit is refused before anything is written, and says which limit', async () => {
    const { threads, bank, audit, record, complete } = await waiting()
    const before = [...audit]
    const refused = complete('x'.repeat(800_000))
    await expect(refused).rejects.toMatchObject({
      code: 'continuation_invalid',
      path: 'result',
      expected: 'at most 786432 bytes of JSON',
    })
    expect((await bank.get({ ...scope, continuationId: record.continuationId }))?.toJSON()).toEqual(record.toJSON())
    expect(audit).toEqual(before)
    // What is just below it fits its commit.
    expect(String((await complete('x'.repeat(786_430))).result)).toHaveLength(786_430)
    await threads.close()
  })

  it('nested too deep is refused, not a fault of the stack', async () => {
    const { threads, complete } = await waiting()
    const deep = (levels: number): unknown => {
      let value: unknown = 1
      for (let i = 0; i < levels; i++) value = [value]
      return value
    }
    for (const levels of [500, 10_000])
      await expect(complete(deep(levels))).rejects.toMatchObject({ code: 'continuation_invalid' })
    expect((await complete(deep(200))).status).toBe('completed')
    await threads.close()
  })
})

describe('W19: one call that submits twice', () => {
  it('has a key for each capability, and no key that another call could have', () => {
    const resume = new ResumeArtifact({ framework: 'adk', nativeInvocationId: 'n', toolCallId: 'c', toolName: 't' })
    const call = { ...scope, provider: 'bank', resume }
    const keys = ['pay:rent', 'pay:heating'].map((capability) => submissionKey({ ...call, capability }))
    expect(new Set(keys).size).toBe(2)
    const [a, b] = [
      { userId: 'a\0b', sessionId: 'c' },
      { userId: 'a', sessionId: 'b\0c' },
    ]
    for (const forged of [a, b]) expect(() => submissionKey({ ...call, ...forged, capability: 'pay' })).toThrow()
  })
})

describe('W23: a provider', () => {
  it('hears that its result counts, and not what becomes of the run that goes on by it', async () => {
    const pay = externalTool({
      ...{ name: 'pay', description: 'Pays', provider: 'bank' },
      input: z.object({ cents: z.int() }),
      result: z.object({ reference: z.string() }),
    })
    // The script ends behind the call: the resumed run fails.
    const agent = agentOf([calls(['c1', 'pay', { cents: 5 }])], [pay])
    const threads = await openThreadlog({ agents: [agent] })
    const engine = await threads.serve({ sweepMs: 20 })
    const run = await threads.start({ agent: 'agent', thread: 'order_1', input: 'Pay.' })
    const bank = threads.continuations('bank')
    for await (const _ of threads.waits({ follow: true })) break
    const [pair] = await bank.listPending()
    if (!pair) throw new Error('no wait')
    const { record, externalId } = pair
    const { userId, sessionId, runId, schemaId } = record
    const done = await bank.complete({
      ...{ userId, sessionId, runId, externalId, schemaId },
      result: { reference: 'r' },
      validate: (v) => v,
    })
    expect(['completed', 'claimed']).toContain(done.status)
    expect((await run.result()).status).toBe('failed')
    await engine.close()
    await threads.close()
  })
})
