import { expect, test } from 'vitest'
import { z } from 'zod'
import type { JsonObject, JsonValue } from '../../src/base/index.ts'
import { externalTool, openThreadlog, type Threadlog, type Wait } from '../../src/index.ts'
import { agentOf, calls, says } from '../support/agents.ts'
import { effects } from '../support/processes/ledger.ts'
import { places } from '../support/processes/place.ts'
import { shops } from '../support/processes/shops.ts'
import { script } from '../support/processes/worker.ts'

// What broke in comparable systems around answers, by its row in the list of known failures: each test covers the class, not the one case.

const place = places()
const open = shops()

const said = (wait: Wait | undefined, text: string): JsonObject => ({
  provider: 'desk',
  continuation_id: wait?.id ?? '',
  result: { said: text },
})

const statuses = async (threads: Threadlog, thread: string): Promise<string[]> =>
  [...(await threads.store.load(threads.thread(thread).stream)).waits.values()].map((wait) => wait.status)

/** Contents of the returns of one call id, in order. */
async function returns(threads: Threadlog, thread: string, id: string): Promise<JsonValue[]> {
  const { messageHistory } = await threads.thread(thread).state()
  return messageHistory.flatMap((message) =>
    message.kind === 'request'
      ? message.parts.flatMap((part) => (part.part_kind === 'tool-return' && part.tool_call_id === id ? [part.content] : []))
      : [],
  )
}

// An answer was kept by its place among the pending questions, so once used it answered the next question in that place.
// Here an answer names one wait; used or not, it is nobody else's, though tool, arguments and call id be the same.
test('row 1: a used answer answers no other question, in its step or in a later one', async () => {
  const files = place()
  const ask = (...ids: string[]) => ids.map((id) => ({ id, name: 'ask', args: { what: 'Shall we?' } }))
  const first = await (await open(files)).run('worker', { thread: 'used_1', input: script(ask('c1', 'c2'), ask('c1'), 'done') })
  const [one, two] = first.waits
  const threads = await open(files)
  expect((await threads.submit(said(one, 'first'))).verdict).toBe('accepted')
  expect(await threads.run('worker', { thread: 'used_1' })).toMatchObject({ status: 'suspended' })
  expect(await statuses(threads, 'used_1')).toEqual(['completed', 'pending'])
  expect((await threads.submit(said(one, 'first'))).verdict).toBe('duplicate')
  expect((await threads.submit(said(one, 'second'))).verdict).toBe('conflict')
  expect(await statuses(threads, 'used_1')).toEqual(['completed', 'pending'])

  expect((await threads.submit(said(two, 'second'))).verdict).toBe('accepted')
  const later = await threads.run('worker', { thread: 'used_1' })
  expect(later).toMatchObject({ status: 'suspended', waits: [{ tool: one?.tool, arguments: one?.arguments }] })
  for (const [wait, text] of [
    [one, 'first'],
    [two, 'second'],
  ] as const)
    expect((await threads.submit(said(wait, text))).verdict).toBe('duplicate')
  expect(await statuses(threads, 'used_1')).toEqual(['pending'])
  expect((await threads.submit(said(later.waits[0], 'third'))).verdict).toBe('accepted')
  expect(await threads.run('worker', { thread: 'used_1' })).toMatchObject({ status: 'completed', output: 'done' })
  expect(await returns(threads, 'used_1', 'c1')).toEqual([{ said: 'first' }, { said: 'third' }])
  expect(await returns(threads, 'used_1', 'c2')).toEqual([{ said: 'second' }])
})

// A result was validated against what an earlier step had asked for, under the same name and call id.
// Here the wait carries the schema id of what it asked for, and its result is validated by the tool of that wait.
test('row 44: a result is judged by what the suspended step asked for, not by an earlier step', async () => {
  const input = z.object({ n: z.int() })
  const step = (name: string, result: z.ZodType) => externalTool({ name, description: 'asks', provider: 'desk', input, result })
  const tools = [step('count', z.strictObject({ count: z.int() })), step('name', z.strictObject({ name: z.string() }))]
  const files = place()
  const agent = () => agentOf([calls(['c1', 'count', { n: 1 }]), calls(['c1', 'name', { n: 2 }]), says('done')], tools)
  await using threads = await openThreadlog({ log: files.log, agents: [agent()] })
  const submit = (wait: Wait | undefined, result: JsonValue, schema_id?: string) =>
    threads.submit({ provider: 'desk', continuation_id: wait?.id ?? '', result, ...(schema_id ? { schema_id } : {}) })
  const live = agent()
  const { waits: counted } = await threads.run(live, { thread: 'steps_1', input: 'go' })
  expect((await submit(counted[0], { name: 'x' })).verdict).toBe('invalid')
  expect((await submit(counted[0], { count: 3 })).verdict).toBe('accepted')
  const { waits: named } = await threads.run(live, { thread: 'steps_1' })
  expect(named).toMatchObject([{ tool: 'name', arguments: { n: 2 } }])
  expect(named[0]?.schemaId).not.toBe(counted[0]?.schemaId)
  expect((await submit(named[0], { count: 3 })).verdict).toBe('invalid')
  expect((await submit(named[0], { count: 3 }, counted[0]?.schemaId)).verdict).toBe('schema-mismatch')
  expect((await submit(named[0], { name: 'x' }, named[0]?.schemaId)).verdict).toBe('accepted')
  expect(await threads.run(live, { thread: 'steps_1' })).toMatchObject({ status: 'completed', output: 'done' })
  expect(await returns(threads, 'steps_1', 'c1')).toEqual([{ count: 3 }, { name: 'x' }])
})

// An approval was honoured with whatever arguments the call had by then.
// Here an approval may quote the digest of tool, arguments and definition, and a digest of other arguments, be it by one byte, is refused.
test('row 50: an approval of arguments that differ in one byte is not one of this call', async () => {
  const threads = await open(place())
  const confirm = (thread: string, what: string) =>
    threads.run('worker', { thread, input: script([{ id: 'c1', name: 'confirm', args: { what } }], 'done') })
  const [wait] = (await confirm('pay_1', 'pay 100')).waits
  const near = ['pay 101', 'pay 10', 'pay 1000', 'Pay 100', 'pay  100', 'pay 100 ', 'pay\u00a0100', 'pay １00']
  for (const [i, what] of near.entries()) {
    const [other] = (await confirm(`near_${i}`, what)).waits
    expect(other?.digest).not.toBe(wait?.digest)
    expect((await threads.approve(wait?.id ?? '', { digest: other?.digest })).verdict).toBe('proposal-changed')
  }
  expect(await statuses(threads, 'pay_1')).toEqual(['pending'])
  expect(await threads.run('worker', { thread: 'pay_1' })).toMatchObject({ status: 'suspended' })
  const [same] = (await confirm('same_1', 'pay 100')).waits
  expect(same?.digest).toBe(wait?.digest)
  expect((await threads.approve(wait?.id ?? '', { digest: same?.digest })).verdict).toBe('accepted')
  expect(await threads.run('worker', { thread: 'pay_1' })).toMatchObject({ status: 'completed' })
})

// A client carried proposals through its own form of messages and lost the signature on the way, so that no approval could be checked.
// Here the digest is one text of the wait, equal wherever the wait is shown; what comes back from JSON approves, and nothing else is needed.
test('row 51: a proposal that went through a client as JSON still has its digest, and is approved by it', async () => {
  const files = place()
  const threads = await open(files)
  const input = script([{ id: 'c1', name: 'confirm', args: { what: 'grüße 👋 "x"' } }], 'done')
  const { waits, thread } = await threads.run('worker', { thread: 'shown_1', input })
  const through = JSON.parse(JSON.stringify(waits[0])) as Wait
  expect(through).toEqual(waits[0])
  const listed: Wait[] = []
  for await (const wait of threads.waits({ thread: thread.thread })) listed.push(JSON.parse(JSON.stringify(wait)) as Wait)
  expect(listed.map(({ id, digest }) => [id, digest])).toEqual([[through.id, through.digest]])
  const elsewhere = await open(files)
  expect((await elsewhere.approve(through.id, { digest: `${through.digest.slice(0, -1)}x` })).verdict).not.toBe('accepted')
  expect((await elsewhere.approve(through.id, { digest: through.digest })).verdict).toBe('accepted')
  expect(await elsewhere.run('worker', { thread: 'shown_1' })).toMatchObject({ status: 'completed', output: 'done' })
  expect(effects(files.ledger)).toHaveLength(1)
})
