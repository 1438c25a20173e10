import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type JsonValue, reject, retryLater } from '../../src/base/index.ts'
import {
  answer,
  apiSource,
  approval,
  denial,
  outcomeDigest,
  type Submission,
  type SubmitContext,
  type SubmitDeps,
  settleResult,
  submitRecord,
  submitResult,
  type ValidatorEntry,
  validatorsOf,
} from '../../src/continuations/index.ts'
import { findWait, type ThreadStore } from '../../src/projections/index.ts'
import { append, type BuiltThread, memoryStore, suspendedThread, TestLookup, type WaitSpec } from '../support/threads.ts'

let store: ThreadStore
let lookup: TestLookup
let deps: SubmitDeps
let calls = 0

beforeEach(async () => {
  store = await memoryStore()
  lookup = new TestLookup()
  deps = { store, lookup, validators: validatorsOf(), application: 'shop' }
})
afterEach(() => store.backend.close())

const by = (id: string): SubmitContext => ({
  actor: { kind: 'human', id: 'shift-lead', source: 'test' },
  source: apiSource('test', id),
  authority: { allows: () => true },
})
const context = () => by(`cmd-${++calls}`)
const thread = async (waits: WaitSpec[] = [{}]): Promise<BuiltThread> => lookup.add(await suspendedThread(store, waits))
const waitOf = async (t: BuiltThread, i = 0) => findWait(await store.load(t.stream), t.waits[i]?.id ?? '')
const validating = (...entries: ValidatorEntry[]): SubmitDeps => ({ ...deps, validators: validatorsOf(entries) })
const payout = (t: BuiltThread, result: JsonValue, change: Partial<Submission> = {}): Submission => ({
  provider: 'payouts',
  address: { continuation_id: t.waits[0]?.id ?? '' },
  outcome: { result },
  digest: outcomeDigest({ result }),
  ...change,
})

describe('a result that fits', () => {
  test('completes its wait, and its receipt tells so without payload', async () => {
    const t = await thread([{ externalId: 'job-1' }])
    const settled = await submitRecord(
      deps,
      { provider: 'payouts', external_id: 'job-1', result_id: 'r-1', result: { secret: [] } },
      context(),
    )
    expect(settled).toMatchObject({ verdict: 'accepted', located: { stream: t.stream, continuationId: t.waits[0]?.id } })
    expect(settled.receipt).toMatchObject({ verdict: 'accepted', final: true, external_id: 'job-1', result_id: 'r-1' })
    expect(JSON.stringify(settled.receipt)).not.toContain('secret')
    const wait = await waitOf(t)
    expect(wait).toMatchObject({ status: 'completed', ready: true, revision: 2 })
    expect(wait?.outcome).toMatchObject({ resultId: 'r-1', digest: outcomeDigest({ result: { secret: [] } }) })
    expect(wait?.outcome?.value?.value).toEqual({ secret: [] })
  })

  test('is recorded with its actor and source', async () => {
    const t = await thread()
    const given = context()
    await submitResult(deps, payout(t, 1), given)
    const events = []
    for await (const batch of store.backend.events.read(t.stream)) events.push(...batch)
    expect(events.at(-1)?.event).toMatchObject({
      type: 'continuation.completed/1',
      actor: given.actor,
      causation: { command_id: given.source.command_id },
      data: { source: given.source, result_id: `test:${given.source.command_id}` },
    })
  })

  test('may be a failure', async () => {
    const t = await thread()
    const outcome = { failure: { code: 'no_funds', retryable: true } }
    const submission = { ...payout(t, 1), outcome, digest: outcomeDigest(outcome) }
    expect((await submitResult(deps, submission, context())).verdict).toBe('accepted')
    expect(await waitOf(t)).toMatchObject({ status: 'failed', outcome: { failure: outcome.failure, value: null } })
  })
})

describe('again', () => {
  test('the same command, the same value and another value', async () => {
    const t = await thread()
    const first = context()
    const receipt = await submitResult(deps, payout(t, 1), first)
    const { version } = await store.load(t.stream)
    expect(await submitResult(deps, payout(t, 1), first)).toEqual(receipt)
    expect(await submitResult(deps, payout(t, 1), context())).toMatchObject({
      verdict: 'duplicate',
      digest: outcomeDigest({ result: 1 }),
    })
    expect(await submitResult(deps, payout(t, 2), context())).toMatchObject({
      verdict: 'conflict',
      digest: outcomeDigest({ result: 1 }),
    })
    expect((await store.load(t.stream)).version).toBe(version)
  })

  test('of twenty results at once one is accepted', async () => {
    const t = await thread()
    const receipts = await Promise.all(Array.from({ length: 20 }, (_, i) => submitResult(deps, payout(t, i % 2), context())))
    const counts = Object.groupBy(receipts, (receipt) => receipt.verdict)
    expect({ accepted: counts.accepted?.length, duplicate: counts.duplicate?.length, conflict: counts.conflict?.length }).toEqual(
      {
        accepted: 1,
        duplicate: 9,
        conflict: 10,
      },
    )
  })

  test('two stores on one log decide by the log', async () => {
    const t = await thread()
    const other = await memoryStore({ backend: store.backend, ids: store.ids })
    await other.load(t.stream)
    const [a, b] = await Promise.all([
      submitResult(deps, payout(t, 1), context()),
      submitResult({ ...deps, store: other }, payout(t, 2), context()),
    ])
    expect([a.verdict, b.verdict].sort()).toEqual(['accepted', 'conflict'])
  })

  test('after the wait was abandoned or claimed the answer stays', async () => {
    const t = await thread([{}, {}])
    await submitResult(deps, payout(t, 1), context())
    await append(store, t.stream, [
      { type: 'continuation.abandoned/1', data: { continuation_id: t.waits[0]?.id ?? '', revision: 3, failure: null } },
      { type: 'continuation.abandoned/1', data: { continuation_id: t.waits[1]?.id ?? '', revision: 2, failure: null } },
    ])
    expect((await submitResult(deps, payout(t, 1), context())).verdict).toBe('duplicate')
    const second = payout(t, 1, { address: { continuation_id: t.waits[1]?.id ?? '' } })
    expect((await submitResult(deps, second, context())).verdict).toBe('abandoned')
  })
})

describe('scope and authority', () => {
  test('forbidden is said before anything is looked up', async () => {
    const closed = { ...context(), authority: { allows: () => false } }
    const settled = await settleResult(deps, payout(await thread(), 1), closed)
    expect(settled).toMatchObject({ verdict: 'forbidden', located: undefined })
  })

  test.each<[string, Partial<Submission>]>([
    ['application', { application_id: 'other' }],
    ['provider', { provider: 'shipping' }],
  ])('of another %s: unknown to outsiders, wrong-scope to the operator', async (_, change) => {
    const t = await thread()
    const settled = await settleResult(deps, payout(t, 1, change), context())
    expect(settled.verdict).toBe('wrong-scope')
    expect(settled.receipt.verdict).toBe('unknown')
    expect((await waitOf(t))?.status).toBe('pending')
  })

  test('unknown is said only after the log was read to its end', async () => {
    const t = await suspendedThread(store, [{ externalId: 'job-9' }])
    const read: string[] = []
    const behind: SubmitDeps = {
      ...deps,
      store: Object.create(store, {
        backend: {
          value: {
            ...store.backend,
            events: Object.assign(Object.create(store.backend.events), {
              barrier: async () => {
                read.push('barrier')
                lookup.add(t)
                return new Map()
              },
            }),
          },
        },
        fold: { value: store.fold.bind(store) },
        commit: { value: store.commit.bind(store) },
      }),
    }
    const submission: Submission = { ...payout(t, 1), address: { external_id: 'job-9' } }
    expect((await submitResult(behind, submission, context())).verdict).toBe('accepted')
    expect(read).toEqual(['barrier'])
    const nowhere = { ...submission, address: { external_id: 'nowhere' } }
    expect((await submitResult(behind, nowhere, context())).verdict).toBe('unknown')
    expect(read).toEqual(['barrier', 'barrier'])
  })
})

describe('validators', () => {
  test('may change the value; the digest stays that of what was submitted', async () => {
    const t = await thread()
    const coerce = {
      provider: 'payouts',
      schemaId: 'payout-result/1',
      validate: async (value: JsonValue) => ({ value, checked: true }),
    }
    await submitResult(validating(coerce), payout(t, 1), context())
    const outcome = (await waitOf(t))?.outcome
    expect(outcome?.value?.value).toEqual({ value: 1, checked: true })
    expect(outcome?.digest).toBe(outcomeDigest({ result: 1 }))
    expect((await submitResult(deps, payout(t, 1), context())).verdict).toBe('duplicate')
  })

  test.each<[string, () => unknown, object]>([
    [
      'an error',
      () => {
        throw new Error('secret')
      },
      { verdict: 'invalid', code: 'validator_refused', path: '$.result' },
    ],
    [
      'a coded refusal',
      () => {
        throw reject('iban_invalid', 'no', { path: '$.iban', expected: 'an IBAN' })
      },
      { verdict: 'invalid', code: 'iban_invalid', path: '$.result.iban', expected: 'an IBAN' },
    ],
    ['a value that is not JSON', () => Number.NaN, { verdict: 'invalid', code: 'json_invalid' }],
    ['a value that is too large', () => 'x'.repeat(1_048_577), { verdict: 'invalid', code: 'accepted_value_too_large' }],
  ])('that answer with %s refuse the result, and the wait stays open', async (_, validate, expected) => {
    const t = await thread()
    const receipt = await submitResult(
      validating({ provider: 'payouts', schemaId: 'payout-result/1', validate }),
      payout(t, 1),
      context(),
    )
    expect(receipt).toMatchObject(expected)
    expect(JSON.stringify(receipt)).not.toContain('secret')
    expect((await submitResult(deps, payout(t, 1), context())).verdict).toBe('accepted')
  })

  test('that cannot tell now decide nothing', async () => {
    const t = await thread()
    const validate = () => {
      throw retryLater('registry_down', 'later')
    }
    const work = submitResult(validating({ provider: 'payouts', schemaId: 'payout-result/1', validate }), payout(t, 1), context())
    await expect(work).rejects.toMatchObject({ code: 'registry_down' })
    expect((await waitOf(t))?.status).toBe('pending')
  })

  test('are slow: the decision is made again on the thread as it is then', async () => {
    const t = await thread()
    const slow = validating({
      provider: 'payouts',
      schemaId: 'payout-result/1',
      validate: async (value) => {
        await submitResult(deps, payout(t, 'faster'), context())
        return value
      },
    })
    expect((await submitResult(slow, payout(t, 'slow'), context())).verdict).toBe('conflict')
    expect((await waitOf(t))?.outcome?.value?.value).toBe('faster')
  })

  test('cannot change the submitted value in place', async () => {
    const t = await thread()
    const spoil = (value: JsonValue) => {
      ;(value as { a: number }).a = 2
      return { ok: true }
    }
    const submission = payout(t, { a: 1 })
    await submitResult(validating({ provider: 'payouts', schemaId: 'payout-result/1', validate: spoil }), submission, context())
    expect(submission.outcome).toEqual({ result: { a: 1 } })
  })
})

describe('kinds', () => {
  // Known failure: results of one kind taken for another.
  const values = {
    approval: { approved: true },
    question: { answers: { 'Which warehouse?': 'North' } },
    external: { reference: 'r' },
  } as const
  const kinds = Object.keys(values) as (keyof typeof values)[]
  const typed = { provider: 'payouts', schemaId: 'payout-result/1' }
  const reference: ValidatorEntry = {
    ...typed,
    validate: (value) => {
      if (typeof value !== 'object' || value === null || !('reference' in value)) throw new Error('no reference')
      return value
    },
  }

  test.each(kinds.flatMap((wait) => kinds.map((result) => ({ wait, result }))))(
    'a wait for $wait and the value of $result',
    async ({ wait, result }) => {
      const t = await thread([{ kind: wait }])
      const submission = { ...payout(t, values[result]), provider: wait === 'external' ? 'payouts' : 'human' }
      const { verdict } = await submitResult(validating(reference), submission, context())
      expect(verdict).toBe(wait === result ? 'accepted' : 'invalid')
    },
  )

  test.each(kinds.flatMap((wait) => kinds.map((schema) => ({ wait, schema }))).filter((pair) => pair.wait !== pair.schema))(
    'a wait for $wait and the schema of $schema',
    async ({ wait, schema }) => {
      const schema_id = { approval: 'threadlog.approval/1', question: 'threadlog.answer/1', external: 'payout-result/1' }[schema]
      const t = await thread([{ kind: wait }])
      const submission = { ...payout(t, values[wait], { schema_id }), provider: wait === 'external' ? 'payouts' : 'human' }
      expect((await submitResult(deps, submission, context())).verdict).toBe('schema-mismatch')
    },
  )

  test('an answer that names no wait is refused though one wait only is open', async () => {
    await thread([{ kind: 'approval' }])
    const settled = await submitRecord(deps, { provider: 'human', result: { approved: true } }, context())
    expect(settled.receipt).toMatchObject({ verdict: 'invalid', code: 'address_missing' })
  })
})

describe('people', () => {
  test('approve what they were shown, with other arguments if they like', async () => {
    const t = await thread([{ kind: 'approval' }])
    const { id, digest } = t.waits[0] as { id: string; digest: string }
    const submission = approval(id, { digest, overrideArgs: { cents: 1 }, message: 'less' })
    expect((await submitResult(deps, submission, context())).verdict).toBe('accepted')
    expect((await waitOf(t))?.outcome?.value?.value).toEqual({ approved: true, override_args: { cents: 1 }, message: 'less' })
  })

  test('cannot approve a proposal that is another one by now', async () => {
    const t = await thread([{ kind: 'approval' }])
    const submission = approval(t.waits[0]?.id ?? '', { digest: '0'.repeat(64) })
    expect((await submitResult(deps, submission, context())).verdict).toBe('proposal-changed')
    expect((await waitOf(t))?.status).toBe('pending')
  })

  test('deny: a completion', async () => {
    const t = await thread([{ kind: 'approval' }])
    await submitResult(deps, denial(t.waits[0]?.id ?? '', { reason: 'too much' }), context())
    const wait = await waitOf(t)
    expect(wait?.status).toBe('completed')
    expect(wait?.outcome?.value?.value).toEqual({ approved: false, message: 'too much' })
  })

  test('answer', async () => {
    const t = await thread([{ kind: 'question' }])
    const id = t.waits[0]?.id ?? ''
    expect(await submitResult(deps, answer(id, { answers: { 'Which warehouse?': ' ' } }), context())).toMatchObject({
      verdict: 'invalid',
      code: 'answer_invalid',
      path: '$.result.answers',
    })
    await submitResult(deps, answer(id, { response: ' either ' }), context())
    expect((await waitOf(t))?.outcome?.value?.value).toEqual({ response: 'either' })
  })
})

test('row 102: a quarantined thread answers so, and takes results again after a repair', async () => {
  const t = await thread()
  const broken = {
    type: 'tool.settled/1',
    data: { call_id: 'x', settlement: 'returned', part: t.state.batch?.response.template, number: 0, reason: null },
  }
  const twice = [broken, broken] as Parameters<typeof append>[2]
  await expect(append(store, t.stream, twice)).rejects.toMatchObject({ code: 'thread_quarantined' })
  expect((await submitResult(deps, payout(t, 1), context())).verdict).toBe('quarantined')
  const version = (await store.fold(t.stream)).quarantine?.version ?? 0
  await store.repair(t.stream, version, 'test', { kind: 'operator', id: 'x', source: 'test' })
  expect((await submitResult(deps, payout(t, 1), context())).verdict).toBe('accepted')
})
