import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../src/base/index.ts'
import { continuationSchemaId, validatorsOf } from '../../src/continuations/index.ts'
import { IntakeRig, payout } from '../engine/intake-rig.ts'

let rig: IntakeRig
beforeEach(async () => void (rig = await IntakeRig.open()))
afterEach(() => rig.close())

const typed = { provider: 'payouts', schemaId: continuationSchemaId({ type: 'number' }) }

// Row 140: an event delivered again while its first delivery was in flight was taken for one out of order, and the projection stopped.
// Here a second delivery is judged in its turn on what the first has left, and nothing stops: every record has its verdict.
test('row 140: delivered again, by the same and by another way, while the first is unsettled', async () => {
  const wait = { schemaId: typed.schemaId }
  const [slow, other] = [await rig.thread([wait]), await rig.thread([wait])]
  const gate = Promise.withResolvers<void>()
  let judging = 0
  const validate = async (value: unknown) => {
    judging++
    if (value === 1) await gate.promise
    return value
  }
  const intake = rig.start({ validators: validatorsOf([{ ...typed, validate }]) })
  const first = { ...payout(slow, 1), result_id: 'r-1' }
  await rig.send(first)
  while (judging === 0) await systemClock.sleep(1)
  await rig.send(first, first, { ...first, result_id: 'r-2' }, payout(slow, 2), payout(other, 5), payout(other, 5))
  // The next poll overlaps the one before it.
  await rig.send(first, payout(other, 6))
  while ((await rig.store.load(other.stream)).waits.get(other.waits[0]!.id)?.status !== 'completed') await systemClock.sleep(1)
  expect(await rig.receipts()).toEqual([])
  gate.resolve()
  await rig.until(9)
  expect(await rig.verdicts()).toEqual([
    ...['accepted', 'accepted', 'accepted', 'duplicate', 'conflict'],
    ...['accepted', 'duplicate', 'accepted', 'conflict'],
  ])
  expect((await rig.backend.topics.progress('results', 'intake')).get(0)).toBe(10n)
  expect((await rig.store.load(slow.stream)).version).toBe(slow.state.version + 1)
  expect(rig.errors).toEqual([])
  await intake.close()
})
