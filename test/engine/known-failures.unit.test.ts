import { expect, test } from 'vitest'
import { z } from 'zod'
import { countingIds, type JsonObject, type JsonValue, systemClock } from '../../src/base/index.ts'
import { defineAgent, defineTool, openThreadlog, type Receipt, type Threadlog, type Wait } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { checkStream } from '../support/processes/checks.ts'
import { effects, timesByKey } from '../support/processes/ledger.ts'
import { places } from '../support/processes/place.ts'
import { shops } from '../support/processes/shops.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { script } from '../support/processes/worker.ts'

// What broke in comparable systems, by its row in the list of known failures: each test covers the class, not the one case.

const place = places()
const open = shops()

const QUESTIONS = {
  questions: [
    {
      question: 'Which one?',
      header: 'Choice',
      options: [
        { label: 'A', description: 'The first' },
        { label: 'B', description: 'The second' },
      ],
    },
  ],
}

const said = (wait: Wait | undefined, text: string): JsonObject => ({
  provider: 'desk',
  continuation_id: wait?.id ?? '',
  result: { said: text },
})

async function statuses(threads: Threadlog, thread: string): Promise<string[]> {
  const { waits } = await threads.store.load(threads.thread(thread).stream)
  return [...waits.values()].map((wait) => wait.status)
}

// A resume matched answers to interrupts by their position, so each turn of a loop ran the effects before it again.
// Here a call belongs to the very response that made it and its settlement is a fact of the log: nothing earlier is looked at again.
test('row 2: five waits in a loop, reopened each time, do the work between them five times', async () => {
  const files = place()
  const turn = [
    { id: 'c1', name: 'note' },
    { id: 'c2', name: 'ask' },
  ]
  const input = script(turn, turn, turn, turn, turn, 'done')
  let result = await (await open(files)).run('worker', { thread: 'loop_1', input })
  for (let i = 1; i <= 5; i++) {
    expect(result.status).toBe('suspended')
    expect(effects(files.ledger)).toHaveLength(i)
    const threads = await open(files)
    expect((await threads.submit(said(result.waits[0], `answer ${i}`))).verdict).toBe('accepted')
    result = await threads.run('worker', { thread: 'loop_1' })
  }
  expect(result).toMatchObject({ status: 'completed', output: 'done' })
  expect([...timesByKey(effects(files.ledger)).values()]).toEqual([1, 1, 1, 1, 1])
})

// With two interrupts pending, an answer without an address went to whichever came first.
// Here an answer must say which wait it means; one that does not is refused with its reason, and both waits stay as they are.
test('row 3: an answer that does not say which of two waits it means is refused', async () => {
  const threads = await open(place())
  const two = script(
    [
      { id: 'c1', name: 'ask' },
      { id: 'c2', name: 'ask' },
    ],
    'done',
  )
  const { waits } = await threads.run('worker', { thread: 'two_1', input: two })
  expect(waits).toHaveLength(2)
  const bare: Receipt[] = [
    await threads.submit({ provider: 'desk', result: { said: 'yes' } }),
    await threads.submit({ provider: 'desk', continuation_id: null, external_id: null, result: { said: 'yes' } }),
    await threads.submit({
      provider: 'desk',
      continuation_id: waits[0]?.id ?? '',
      external_id: waits[1]?.externalId ?? '',
      result: { said: 'yes' },
    }),
  ]
  expect(bare.map(({ verdict, code }) => [verdict, code])).toEqual([
    ['invalid', 'address_missing'],
    ['invalid', 'address_missing'],
    ['invalid', 'address_ambiguous'],
  ])
  for (const id of ['two_1', '', 'nobody'])
    expect(['invalid', 'unknown']).toContain(
      (await threads.submit({ provider: 'desk', continuation_id: id, result: { said: 'yes' } })).verdict,
    )
  expect(await statuses(threads, 'two_1')).toEqual(['pending', 'pending'])
  // Going on without an answer answers nothing either.
  expect(await threads.run('worker', { thread: 'two_1' })).toMatchObject({ status: 'suspended' })
  expect(await statuses(threads, 'two_1')).toEqual(['pending', 'pending'])
})

// Stack traces got into the journal, so the same failure hashed differently on every replay.
// Here an event holds the class of an error and codes of ours: two instances thrown elsewhere, with other words, give the same hashes.
test('row 24: two error instances of one class leave the same events, byte for byte', async () => {
  const clock = { ...systemClock, now: () => 1_700_000_000_000 }
  const hashes = async (fail: () => never, toolErrors: 'throw' | 'return') => {
    const tool = defineTool({ name: 'fault', description: 'Fails', input: z.object({}), execute: fail })
    const model = scriptedModel([{ parts: [{ tool_call: { id: 'c1', name: 'fault' } }] }, { parts: [{ text: 'sorry' }] }])
    const agent = defineAgent({ name: 'faulty', revision: '1', model, tools: [tool] })
    await using threads = await openThreadlog({ clock, ids: countingIds() })
    const ran = threads.run(agent, { thread: 'fault_1', input: 'go', toolErrors })
    if (toolErrors === 'throw') await expect(ran).rejects.toMatchObject({ code: 'tool_threw' })
    else expect((await ran).status).toBe('completed')
    const events = await eventsOf(threads.backend, threads.thread('fault_1').stream)
    const bodies = events.map((event) =>
      JSON.stringify({ ...event, actor: null, previous: null, hash: null, data: withoutOwner(event.data) }),
    )
    expect(bodies.join()).not.toMatch(/secret|known-failures|at /)
    return bodies
  }
  const here = (): never => {
    throw new RangeError('secret of one')
  }
  const deeper = (): never => {
    const nested = () => here()
    try {
      return nested()
    } catch {
      throw Object.assign(new RangeError('another secret'), { cause: new Error('secret cause'), more: { secret: 1 } })
    }
  }
  for (const mode of ['throw', 'return'] as const) expect(await hashes(deeper, mode)).toEqual(await hashes(here, mode))
})

/** Owners are random in each process. */
const withoutOwner = (data: object): object => ({ ...data, owner: null })

// A recorded approval was honoured only when the resume brought no context of its own.
// Here the approval is an event that the resume incorporates; what a caller binds to a run never decides anything.
test('row 47: a resume with fresh bindings of any shape honours the approval', async () => {
  class Client {
    readonly approved = false
  }
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  const hostile = new Proxy({}, { get: () => Client, has: () => true })
  const shapes = [
    undefined,
    null,
    0,
    false,
    '',
    'text',
    [],
    {},
    { approved: false },
    new Client(),
    Client,
    circular,
    Object.freeze([1]),
    hostile,
  ]
  for (const [i, deps] of shapes.entries()) {
    const files = place()
    const thread = `bound_${i}`
    const seen: { approved: boolean; deps: unknown }[] = []
    const agent = () => {
      const execute = (_: unknown, context: { approved: boolean; deps: unknown }) => void seen.push(context)
      const tool = defineTool({ name: 'risky', description: 'Needs a yes', input: z.object({}), needsApproval: true, execute })
      const answer = (prompt: readonly { role: string }[]) =>
        prompt.some(({ role }) => role === 'tool')
          ? { parts: [{ text: 'done' }] }
          : { parts: [{ tool_call: { id: 'c1', name: 'risky' } }] }
      return defineAgent({ name: 'bound', revision: '1', tools: [tool], model: scriptedModel(answer) })
    }
    const before = await openThreadlog({ log: files.log, agents: [agent()] })
    const { waits } = await before.run('bound', { thread, input: 'go', bindings: { deps: 'before' } })
    await before.approve(waits[0]?.id ?? '', { digest: waits[0]?.digest })
    await before.close()
    await using after = await openThreadlog({ log: files.log, agents: [agent()] })
    const bindings = deps === undefined ? undefined : { deps }
    expect(await after.run('bound', { thread, bindings })).toMatchObject({ status: 'completed', output: 'done' })
    expect(seen).toHaveLength(1)
    expect(seen[0]?.approved).toBe(true)
    expect(seen[0]?.deps === deps).toBe(true)
  }
})

// The client and the store each made ids, so an approved call showed up as two messages after a reload.
// Here the model's call id is the only id of a call, and the fold puts its one settlement in the history, however often it is read.
test('row 53: after an approval and reloads one call has one message and one return', async () => {
  const files = place()
  const input = script([{ id: 'c1', name: 'confirm', args: { what: 'x' } }], 'done')
  const { waits } = await (await open(files)).run('worker', { thread: 'once_1', input })
  const approving = await open(files)
  for (const verdict of ['accepted', 'duplicate'])
    expect((await approving.approve(waits[0]?.id ?? '', { digest: waits[0]?.digest })).verdict).toBe(verdict)
  expect(await (await open(files)).run('worker', { thread: 'once_1' })).toMatchObject({ status: 'completed' })
  for (let reload = 0; reload < 2; reload++) {
    const threads = await open(files)
    const { message_history } = (await threads.thread('once_1').state()).toJSON() as unknown as {
      message_history: { parts: JsonObject[] }[]
    }
    const parts = message_history.flatMap((message) => message.parts).filter((part) => part['tool_call_id'] === 'c1')
    expect(parts.map((part) => part['part_kind'])).toEqual(['tool-call', 'tool-return'])
    await checkStream(threads.store, threads.thread('once_1').stream)
  }
  expect(effects(files.ledger)).toHaveLength(1)
})

// A provider's result was taken as the decision on an approval, because both came in through one door.
// Here a wait has one provider and one schema, and each way in is checked against both: only a matching pair is accepted.
test('row 56: of all kinds of waits and all kinds of answers only matching pairs are accepted', async () => {
  const threads = await open(place())
  const kinds = ['external', 'approval', 'question'] as const
  const calls = {
    external: { id: 'c1', name: 'ask' },
    approval: { id: 'c1', name: 'confirm' },
    question: { id: 'c1', name: 'ask_user_question', args: QUESTIONS },
  }
  const desk = (wait: Wait, result: JsonValue) => threads.submit({ provider: 'desk', continuation_id: wait.id, result })
  const answers: [name: string, fits: (typeof kinds)[number] | undefined, send: (wait: Wait) => Promise<Receipt>][] = [
    ['result', 'external', (wait) => desk(wait, { said: 'yes' })],
    [
      'failure',
      'external',
      (wait) => threads.submit({ provider: 'desk', continuation_id: wait.id, failure: { code: 'closed', retryable: false } }),
    ],
    ['result of another form', undefined, (wait) => desk(wait, { approved: true })],
    [
      'result of another provider',
      undefined,
      (wait) => threads.submit({ provider: 'other', continuation_id: wait.id, result: { said: 'yes' } }),
    ],
    ['approval dressed as a result', undefined, (wait) => desk(wait, { approved: true, answers: { 'Which one?': 'A' } })],
    ['approval', 'approval', (wait) => threads.approve(wait.id)],
    ['denial', 'approval', (wait) => threads.deny(wait.id, { reason: 'no' })],
    ['answer', 'question', (wait) => threads.answer(wait.id, { answers: { 'Which one?': 'A' } })],
    ['free answer', 'question', (wait) => threads.answer(wait.id, { response: 'neither' })],
    ['answer to another question', undefined, (wait) => threads.answer(wait.id, { answers: { 'Which two?': 'A' } })],
    ['approval of another proposal', undefined, (wait) => threads.approve(wait.id, { digest: '0'.repeat(64) })],
  ]
  let n = 0
  for (const kind of kinds)
    for (const [name, fits, send] of answers) {
      const thread = `cross_${n++}`
      const { waits } = await threads.run('worker', { thread, input: script([calls[kind]], 'done') })
      const wait = waits[0] as Wait
      expect(wait.kind).toBe(kind)
      const { verdict } = await send(wait)
      expect([kind, name, verdict === 'accepted']).toEqual([kind, name, fits === kind])
      if (verdict !== 'accepted') expect(await statuses(threads, thread)).toEqual(['pending'])
      else expect(await threads.run('worker', { thread })).toMatchObject({ status: 'completed', output: 'done' })
    }
})
