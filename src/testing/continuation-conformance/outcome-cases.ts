import assert from 'node:assert/strict'
import { ContinuationFailure, ContinuationProvider } from '../../continuations/index.ts'
import { type ContinuationCase, RUN, refused, runOf, SCHEMA, scopeWith, winners } from './suite.ts'

const failed = new ContinuationFailure({ code: 'external_job_failed', retryable: true })

export const outcomeCases: ContinuationCase[] = [
  {
    name: '17: what the validator makes of a result is stored, armed and claimed; the run goes on',
    async run(bench) {
      const record = await bench.waiting()
      const provider = bench.provider()
      const validate = (value: unknown) => ({ rows: Number((value as { rows: string }).rows) })
      const at = { ...runOf(RUN), externalId: 'job-1', schemaId: SCHEMA }
      const completed = await provider.complete({ ...at, result: { rows: '3' }, validate })
      assert.deepEqual([completed.status, completed.ready, completed.revision], ['completed', false, 1])
      const armed = await provider.arm(completed)
      assert.deepEqual([armed.status, armed.ready, armed.revision], ['completed', true, 2])
      const claimed = await bench.claim(armed)
      assert.deepEqual([claimed.status, claimed.revision, claimed.result], ['claimed', 3, { rows: 3 }])
      assert.equal(claimed.continuationId, record.continuationId)
      const run = await bench.store.getRun(RUN)
      assert.deepEqual([run?.status, run?.revision, run?.pendingAction], ['running', 2, null])
    },
  },
  {
    name: '16, 44: a validator that throws, rejects or is none refuses the result, and the wait is as it was; an awaited one is awaited',
    async run(bench) {
      const record = await bench.waiting()
      const before = await bench.now(record)
      const at = { ...runOf(RUN), externalId: 'job-1', schemaId: SCHEMA, result: 1 }
      const complete = (validate: unknown) => bench.provider().complete({ ...at, validate: validate as () => unknown })
      const fail = () => {
        throw new Error('no')
      }
      for (const validate of [fail, async () => fail(), undefined, 'text', () => Number.NaN, () => new Set([1])])
        await refused(complete(validate), 'continuation_invalid')
      assert.deepEqual((await bench.now(record)).toJSON(), before.toJSON())
      assert.equal((await complete(async () => ({ two: 2 }))).status, 'completed')
      assert.deepEqual((await bench.now(record)).result, { two: 2 })
    },
  },
  {
    name: '19, 32: another provider, user, session, run, application, external id or schema resolves nothing, all by one answer',
    async run(bench) {
      const record = await bench.waiting()
      const elsewhere = new ContinuationProvider({ store: bench.store, applicationId: 'billing', provider: 'hatchet' })
      const strangers: Parameters<typeof bench.complete>[1][] = [
        { provider: bench.provider({ provider: 'post' }) },
        { provider: elsewhere },
        { externalId: 'job-2' },
        { schemaId: 'report-result/v2' },
        ...[{ userId: 'user-2' }, { sessionId: 'session-2' }, { runId: 'run-2' }].map((part) => ({ scope: scopeWith(part) })),
      ]
      const answers = new Set<string>()
      for (const o of strangers) {
        const before = await bench.now(record)
        answers.add(JSON.stringify(await bench.conflict(bench.complete(1, o), 'unknown')))
        assert.deepEqual((await bench.now(record)).toJSON(), before.toJSON())
      }
      assert.equal(answers.size, 1)
    },
  },
  {
    name: '21: of a completion and a failure at once one counts',
    async run(bench) {
      const record = await bench.waiting()
      const fail = bench.provider().fail({ ...runOf(RUN), externalId: 'job-1', schemaId: SCHEMA, failure: failed })
      assert.equal(await winners(bench.complete('done'), fail), 1)
      assert.equal((await bench.now(record)).revision, 1)
    },
  },
  {
    name: '33, S6: a second outcome is a conflict, an equal one too; it says whether it is the one that stands',
    async run(bench) {
      const record = await bench.waiting()
      await bench.complete({ b: 1, a: [] })
      await bench.unchanged(record, () => bench.complete({ a: [], b: 1 }), 'already_resolved')
      const fail = () => bench.provider().fail({ ...runOf(RUN), externalId: 'job-1', schemaId: SCHEMA, failure: failed })
      await bench.unchanged(record, fail, 'already_resolved')
    },
  },
  {
    name: 'S6: a conflict tells an equal outcome from another one, after the claim too',
    needs: 'reasons',
    async run(bench) {
      const same = async (result: unknown) => (await bench.conflict(bench.complete(result)))['same']
      const armed = await bench.claimable({ b: 1, a: [] })
      assert.deepEqual([await same({ a: [], b: 1 }), await same({ a: {}, b: 1 })], [true, false])
      await bench.claim(armed)
      assert.deepEqual([await same({ a: [], b: 1 }), await same(null)], [true, false])
    },
  },
  {
    name: '42: null is a result',
    async run(bench) {
      const armed = await bench.claimable(null)
      assert.deepEqual([armed.status, armed.result, armed.failure], ['completed', null, null])
      const claimed = await bench.claim(armed)
      assert.deepEqual([claimed.status, claimed.result, claimed.failure], ['claimed', null, null])
    },
  },
  {
    name: '43: both outcomes at once, cycles, NaN and bytes are refused, and the wait is as it was',
    async run(bench) {
      const record = await bench.waiting()
      const before = await bench.now(record)
      const cycle: unknown[] = []
      cycle.push(cycle)
      const at = { scope: RUN, provider: 'hatchet', externalId: 'job-1', schemaId: SCHEMA }
      for (const outcome of [
        { result: 1, failure: failed },
        { result: cycle },
        { result: Number.NaN },
        { result: new Uint8Array(1) },
      ])
        await refused(bench.store.resolveContinuation({ ...at, ...outcome }), 'continuation_invalid')
      assert.deepEqual((await bench.now(record)).toJSON(), before.toJSON())
    },
  },
  {
    name: '58: values come back as they were: empty lists and objects, largest whole numbers, fractions, depth, any text',
    async run(bench) {
      const deep = (levels: number): unknown => (levels === 0 ? [] : [deep(levels - 1)])
      const numbers = [9007199254740991, -9007199254740991, Math.PI, 1e300, 5e-324, 0]
      const result = {
        list: [],
        object: {},
        nested: { a: [] },
        numbers,
        deep: deep(200),
        text: 'é\u0000\u2028😀',
        '': JSON.parse('{"__proto__":{"a":1}}'),
      }
      const armed = await bench.claimable(result)
      assert.deepEqual(armed.result, result)
      assert.deepEqual((await bench.claim(armed)).result, result)
      assert.deepEqual((await bench.provider().lookup({ externalId: 'job-1' }))?.record.result, result)
    },
  },
  {
    name: '48: neither the caller’s object nor a returned one is the stored one',
    async run(bench) {
      const result = { rows: [1] }
      const armed = await bench.claimable(result)
      result.rows.push(2)
      for (const held of [armed, await bench.now(armed)])
        try {
          ;(held.result as typeof result).rows.push(3)
        } catch {
          // Frozen is as good.
        }
      assert.deepEqual((await bench.claim(armed)).result, { rows: [1] })
      assert.deepEqual((await bench.now(armed)).result, { rows: [1] })
    },
  },
  {
    name: 'a failure is a code and whether to try again, and nothing else',
    async run(bench) {
      await bench.waiting()
      const at = { ...runOf(RUN), externalId: 'job-1', schemaId: SCHEMA }
      const failure = { code: 'boom', retryable: false } as ContinuationFailure
      await refused(bench.provider().fail({ ...at, failure }), 'continuation_invalid')
      const record = await bench.provider().fail({ ...at, failure: failed })
      assert.deepEqual([record.status, record.failure?.toJSON(), record.result], ['failed', failed.toJSON(), null])
      const claimed = await bench.claim(await bench.provider().arm(record))
      assert.deepEqual([claimed.status, claimed.failure?.toJSON()], ['claimed', failed.toJSON()])
    },
  },
  {
    name: 'W14: a result that looks like a failure is a result',
    async run(bench) {
      const looks = { failure: { code: 'external_job_failed', retryable: false }, error: { code: 'external_job_failed' } }
      const claimed = await bench.claim(await bench.claimable(looks))
      assert.deepEqual([claimed.result, claimed.failure], [looks, null])
    },
  },
]
