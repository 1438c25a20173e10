import { expect, it, vi } from 'vitest'
import { recordsOf, verify } from '../../examples/demo/facts.ts'
import { CUSTOMER, INPUT } from '../../examples/demo/story.ts'
import { World } from '../../examples/demo/world.ts'

vi.stubEnv('OPENAI_BASE_URL', '')

// Nobody can know whether a body that was killed had done its work. `refund` is not declared retryable, so running it again could
// refund twice: the call is settled as unknown, and the model is told.
it('kill -9 in the middle of refund: unknown, never run again, and the run goes on', { timeout: 60_000 }, async () => {
  await using world = await World.open()
  const engine = await world.startEngine('refund')
  const run = await world.threads.start({ agent: 'support', ...CUSTOMER, input: INPUT })
  for await (const wait of world.threads.waits({ ...CUSTOMER, kind: 'approval', follow: true })) {
    await world.threads.approve(wait.id, { digest: wait.digest, by: 'shift-lead' })
    break
  }
  await engine.says('effect', (line) => line['tool'] === 'refund')
  await world.killEngine()
  await world.startEngine()

  const result = await run.result({ signal: AbortSignal.timeout(20_000) })
  expect(result).toMatchObject({ status: 'completed', output: expect.stringContaining('cannot tell whether the refund') })
  await world.killEngine()

  expect(world.effects.of('refund')).toHaveLength(1)
  const records = await recordsOf(world.threads, CUSTOMER)
  const dispatches = records.flatMap(({ event }) => (event?.type === 'tool.dispatched/1' ? [event.data] : []))
  expect(dispatches.map(({ tool, number }) => [tool, number])).toEqual([
    ['tool/local/lookup_order', 1],
    ['tool/local/refund', 1],
  ])
  const settlements = records.flatMap(({ event }) => (event?.type === 'tool.settled/1' ? [event.data] : []))
  expect(settlements.map(({ settlement, reason }) => [settlement, reason])).toEqual([
    ['returned', null],
    ['unknown', 'interrupted'],
  ])
  const checked = await verify(world.threads, CUSTOMER, records, world.place.address)
  expect(checked.chain).toBe(true)
  expect(checked.replayed).toBe(checked.live)
})
