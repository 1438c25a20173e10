import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fatal } from '../../src/base/index.ts'
import { apiSource, type Receipt, submitRecord, validatorsOf } from '../../src/continuations/index.ts'
import type { EventDraft } from '../../src/events/index.ts'
import type { RecordedEvent, Topics } from '../../src/log/index.ts'
import { findWait, foldStream, stateHash } from '../../src/projections/index.ts'
import { append, type BuiltThread, memoryStore } from '../support/threads.ts'
import { IntakeRig, payout, withTopics } from './intake-rig.ts'

// As known-failures.unit.test.ts: results that come late, and results that are judged out of their order.

const typed = { provider: 'payouts', schemaId: 'payout-result/1' }
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)
const offsetOf = ({ source }: Receipt): number => ('offset' in source ? (source.offset ?? -1) : -1)

type Close = (rig: IntakeRig, thread: BuiltThread) => Promise<unknown>

const events =
  (make: (wait: string, run: string) => EventDraft[]): Close =>
  (rig, { stream, runId, waits }) =>
    append(rig.store, stream, make(waits[0]?.id ?? '', runId), { runId, attempt: 1 })

const end = (how: 'cancelled' | 'expired' | 'abandoned'): Close =>
  events((wait) => [{ type: `continuation.${how}/1`, data: { continuation_id: wait, revision: 2, failure: null } }])

/** An answer that came by another way. */
const answer =
  (outcome: { result: unknown } | { failure: object }): Close =>
  async ({ store, lookup }, thread) => {
    const deps = { store, lookup, validators: validatorsOf(), application: 'shop' }
    const record = { provider: 'payouts', continuation_id: thread.waits[0]?.id, ...outcome }
    const context = {
      actor: { kind: 'provider', id: '', source: 'api' },
      source: apiSource('submit', 'other way'),
      authority: { allows: () => true },
    }
    expect((await submitRecord(deps, record, context)).verdict).toBe('accepted')
  }

const claim = events((wait) => [{ type: 'continuation.claimed/1', data: { continuation_id: wait, revision: 3 } }])

/** Its invocation goes on without it, and ends. */
const leaveBehind = events((_, run) => [
  {
    type: 'run.started/1',
    data: {
      run_id: `${run}-2`,
      invocation_id: run,
      attempt: 1,
      owner: { id: 'owner-1', kind: 'engine' },
      agent: { name: 'support', revision: '1' },
      tool_recovery: 'declared',
      trigger: { kind: 'input', continuation_ids: [] },
    },
  },
  { type: 'run.cancelled/1', data: { run_id: `${run}-2`, reason: 'over' } },
])

const FAILURE = { code: 'bank_closed', retryable: false }

// A duplicate of an answer came when its wait was closed, was recorded all the same, and from then on no replay could get past it.
// Here only an open wait takes a result, and whether it is open is asked again by the very append: what is late gets its verdict and
// leaves no event.
test.each<[string, Close, string[]]>([
  ['completed', answer({ result: 1 }), ['duplicate', 'duplicate', 'conflict', 'conflict']],
  ['failed', answer({ failure: FAILURE }), ['conflict', 'conflict', 'conflict', 'duplicate']],
  [
    'claimed',
    async (rig, thread) => {
      await answer({ result: 2 })(rig, thread)
      await claim(rig, thread)
    },
    ['conflict', 'conflict', 'duplicate', 'conflict'],
  ],
  ['cancelled', end('cancelled'), Array(4).fill('cancelled')],
  ['expired', end('expired'), Array(4).fill('expired')],
  ['abandoned', end('abandoned'), Array(4).fill('abandoned')],
  ['left behind', leaveBehind, Array(4).fill('late')],
])(
  'row 13: a wait that is %s while a batch for it is judged takes nothing of it, and replay passes',
  async (_, close, verdicts) => {
    const rig = await IntakeRig.open()
    const thread = await rig.thread()
    const recorded = async (): Promise<RecordedEvent[]> => {
      const records: RecordedEvent[] = []
      for await (const batch of rig.backend.events.read(thread.stream)) records.push(...batch)
      return records
    }
    let closed: RecordedEvent[] | undefined
    // The first of the batch is found good, and only then the wait is closed.
    const validate = async (value: unknown) => {
      if (!closed) {
        await close(rig, thread)
        closed = await recorded()
      }
      return value
    }
    const batch = [
      payout(thread, 1),
      payout(thread, 1),
      payout(thread, 2),
      { ...payout(thread, 0), result: undefined, failure: FAILURE },
    ]
    await rig.send(...batch)
    const first = rig.start({ validators: validatorsOf([{ ...typed, validate }]) })
    expect((await rig.until(4)).map(({ verdict }) => verdict)).toEqual(verdicts)
    await first.close()

    const records = await recorded()
    expect(records).toEqual(closed)
    const { state, quarantine } = foldStream(records)
    expect(quarantine).toBeUndefined()
    expect(stateHash(state)).toBe(stateHash(await rig.store.load(thread.stream)))

    // A process that has seen nothing of it replays the thread, and judges the same batch alike.
    const store = await memoryStore({ backend: rig.backend })
    await rig.send(...batch)
    rig.start({ store })
    expect((await rig.until(8)).slice(4).map(({ verdict }) => verdict)).toEqual(verdicts)
    expect(await recorded()).toEqual(closed)
    expect(findWait((await store.fold(thread.stream)).state, thread.waits[0]?.id ?? '')).toEqual(
      findWait(state, thread.waits[0]?.id ?? ''),
    )
    expect(rig.errors).toEqual([])
    await rig.close()
  },
)

// A subscription saved the position of the newest event it had handled, and those before it that were still being handled were never seen again.
// Here the position saved is that of the oldest record without a receipt, in whatever order verdicts fall and whenever the process dies.
test('row 65: verdicts fall in any order, and the saved position never passes a record that has none', async () => {
  const SIZE = 9
  const orders = fc.shuffledSubarray(upTo(SIZE), { minLength: SIZE })
  await fc.assert(
    fc.asyncProperty(orders, fc.nat({ max: SIZE }), async (order, survived) => {
      const rig = await IntakeRig.open()
      const threads = await Promise.all(order.map(() => rig.thread()))
      const gates = new Map(order.map((n) => [n, Promise.withResolvers<void>()]))
      const settled = new Map(order.map((n) => [n, Promise.withResolvers<void>()]))
      const decided = new Set<number>()
      const passed: number[] = []
      let dead = false
      const transact: Topics['transact'] = async (o) => {
        if (dead) throw fatal('killed', 'The process is gone.')
        for (const next of o.progress?.next.values() ?? [])
          passed.push(...upTo(Number(next) - 1).filter((offset) => !decided.has(offset)))
        await rig.backend.topics.transact(o)
      }
      const validate = async (value: unknown) => {
        await gates.get(value as number)?.promise
        return value
      }
      const dying = rig.start({
        backend: withTopics(rig.backend, { transact }),
        validators: validatorsOf([{ ...typed, validate }]),
        onSettled: ({ receipt }) => {
          decided.add(offsetOf(receipt))
          settled.get(offsetOf(receipt))?.resolve()
        },
      })
      await rig.send(...threads.map((thread, i) => payout(thread, i + 1)))
      for (const n of order.slice(0, survived)) {
        gates.get(n)?.resolve()
        await settled.get(n)?.promise
      }
      const low = upTo(SIZE).find((n) => !order.slice(0, survived).includes(n)) ?? SIZE + 1
      await rig.until(low - 1)
      dead = true
      for (const gate of gates.values()) gate.resolve()
      await Promise.allSettled([dying.done, dying.close()])
      expect(passed).toEqual([])
      expect((await rig.receipts()).map(offsetOf)).toEqual(upTo(low - 1))
      expect(await rig.backend.topics.progress('results', 'intake')).toEqual(new Map(low > 1 ? [[0, BigInt(low)]] : []))

      rig.start()
      const receipts = await rig.until(SIZE)
      expect(receipts.map(offsetOf)).toEqual(upTo(SIZE))
      expect(receipts.map(({ verdict }) => verdict)).toEqual(Array(SIZE).fill('accepted'))
      await rig.close()
    }),
    { numRuns: 40 },
  )
})
