import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { retryLater, systemClock } from '../../src/base/index.ts'
import { approval, humanContext, submitResult, validatorsOf } from '../../src/continuations/index.ts'
import { findWait } from '../../src/projections/index.ts'
import { IntakeRig, payout } from './intake-rig.ts'

let rig: IntakeRig
beforeEach(async () => {
  rig = await IntakeRig.open()
})
afterEach(() => rig.close())

const typed = { provider: 'payouts', schemaId: 'payout-result/1' }

describe('one receipt per record', () => {
  test('with the coordinate of the record, in its order', async () => {
    const [a, b] = [await rig.thread(), await rig.thread()]
    await rig.send(payout(a, 1), payout(b, { x: [] }), payout(a, 1))
    rig.start()
    const receipts = await rig.until(3)
    expect(receipts.map(({ verdict, source, sequence, final }) => ({ verdict, source, sequence, final }))).toEqual(
      ['accepted', 'accepted', 'duplicate'].map((verdict, i) => ({
        verdict,
        source: {
          cluster: rig.backend.events.id,
          topic: 'results',
          partition: 0,
          offset: i + 1,
          record_time: expect.any(Number),
        },
        sequence: 1,
        final: true,
      })),
    )
    expect(findWait(await rig.store.load(a.stream), a.waits[0]?.id ?? '')?.outcome?.source).toMatchObject({
      topic: 'results',
      offset: 1,
    })
  })

  test('poison does not stop it: bad, good, bad, good', async () => {
    const [a, b] = [await rig.thread(), await rig.thread()]
    rig.start()
    await rig.send('{"provider":', payout(a, 1), { provider: 'payouts', result: 1 }, payout(b, 1))
    await rig.until(4)
    expect(await rig.verdicts()).toEqual(['unreadable', 'accepted', 'invalid', 'accepted'])
  })

  test('progress lies behind the last receipt', async () => {
    await rig.send(payout(await rig.thread(), 1), 'x')
    rig.start()
    await rig.until(2)
    expect(await rig.backend.topics.progress('results', 'intake')).toEqual(new Map([[0, 3n]]))
  })

  test('a thousand records, more than are judged at a time: each has one', async () => {
    const threads = await Promise.all(Array.from({ length: 20 }, () => rig.thread()))
    const records = Array.from({ length: 1_000 }, (_, i) => (i % 5 === 0 ? `${i}` : payout(threads[i % 20]!, i % 3)))
    await rig.send(...records)
    rig.start()
    const receipts = await rig.until(1_000)
    expect(receipts.map(({ source }) => ('offset' in source ? source.offset : 0))).toEqual(records.map((_, i) => i + 1))
    expect(receipts.filter(({ verdict }) => verdict === 'accepted')).toHaveLength(16)
  })
})

describe('order', () => {
  test('a slow thread holds neither the others nor the order of the receipts', async () => {
    const [slow, quick] = [await rig.thread(), await rig.thread()]
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const validate = async (value: unknown) => {
      if (value === 'slow') await gate
      return value
    }
    await rig.send(payout(slow, 'slow'), payout(slow, 'second'), payout(quick, 1))
    rig.start({ validators: validatorsOf([{ ...typed, validate }]) })
    while ((await rig.store.load(quick.stream)).waits.get(quick.waits[0]?.id ?? '')?.status !== 'completed')
      await systemClock.sleep(2)
    // The third is decided, but progress must not pass the first.
    expect(await rig.receipts()).toEqual([])
    expect((await rig.backend.topics.progress('results', 'intake')).size).toBe(0)
    release()
    await rig.until(3)
    expect(await rig.verdicts()).toEqual(['accepted', 'conflict', 'accepted'])
  })

  test('a record that cannot be decided yet is tried again, and the others go on', async () => {
    const [a, b] = [await rig.thread(), await rig.thread()]
    let tries = 0
    const validate = (value: unknown) => {
      if (value === 'later' && ++tries < 4) throw retryLater('registry_down', 'The registry does not answer.')
      return value
    }
    await rig.send(payout(a, 'later'), payout(b, 1))
    rig.start({ validators: validatorsOf([{ ...typed, validate }]) })
    await rig.until(2)
    expect(await rig.verdicts()).toEqual(['accepted', 'accepted'])
    expect(tries).toBe(4)
    expect(rig.errors).toHaveLength(3)
  })
})

describe('who may answer', () => {
  test('people only where it was allowed', async () => {
    const t = await rig.thread([{ kind: 'approval' }])
    const record = { provider: 'human', continuation_id: t.waits[0]?.id, result: { approved: true } }
    await rig.send(record)
    const first = rig.start()
    await rig.until(1)
    await first.close()
    await rig.send(record)
    rig.start({
      rules: { authorize: (submission, delivery) => (submission.provider === 'human' && delivery.key === 'k' ? 'lead' : false) },
    })
    await rig.until(2)
    expect(await rig.verdicts()).toEqual(['forbidden', 'accepted'])
  })

  test('claiming another provider does not help', async () => {
    const t = await rig.thread([{ kind: 'approval' }])
    await rig.send({ provider: 'payouts', continuation_id: t.waits[0]?.id, result: { approved: true } })
    rig.start()
    expect((await rig.until(1))[0]?.verdict).toBe('unknown')
  })

  test('only the named providers; a check that throws lets nobody in', async () => {
    const [a, b] = [await rig.thread(), await rig.thread([{ provider: 'shipping' }])]
    await rig.send(payout(a, 1), { ...payout(b, 1), provider: 'shipping' })
    const authorize = () => {
      throw new Error('no')
    }
    rig.start({ rules: { providers: { only: ['shipping'] }, authorize } })
    await rig.until(2)
    expect(await rig.verdicts()).toEqual(['forbidden', 'accepted'])
  })
})

test('verdicts are told as they fall, operator view included', async () => {
  const t = await rig.thread()
  const seen: string[] = []
  await rig.send(payout(t, 1), { ...payout(t, 1), application_id: 'other' })
  rig.start({
    onSettled: ({ verdict }) => {
      seen.push(verdict)
      throw new Error('a listener that fails')
    },
  })
  await rig.until(2)
  expect(seen).toEqual(['accepted', 'wrong-scope'])
  expect(await rig.verdicts()).toEqual(['accepted', 'unknown'])
})

test('a result by the API and one by the topic: one is accepted', async () => {
  const t = await rig.thread([{ kind: 'approval' }])
  rig.start({ rules: { providers: { except: [] } } })
  const deps = { store: rig.store, lookup: rig.lookup, validators: validatorsOf(), application: 'shop' }
  await rig.send({ provider: 'human', continuation_id: t.waits[0]?.id, result: { approved: false } })
  const receipt = await submitResult(deps, approval(t.waits[0]?.id ?? ''), humanContext('lead', 'api', 'cmd-1'))
  const [other] = await rig.until(1)
  expect([receipt.verdict, other?.verdict].sort()).toEqual(['accepted', 'conflict'])
})

test('close is quick while a record is being retried; the record is delivered again', async () => {
  const t = await rig.thread()
  const never = validatorsOf([
    {
      ...typed,
      validate: () => {
        throw retryLater('registry_down', 'no')
      },
    },
  ])
  await rig.send(payout(t, 1))
  const intake = rig.start({ validators: never })
  while (rig.errors.length < 2) await systemClock.sleep(2)
  await intake.close()
  expect(await rig.receipts()).toEqual([])
  rig.start()
  expect((await rig.until(1))[0]?.verdict).toBe('accepted')
})
