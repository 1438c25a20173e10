import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openThreadlog, type Threadlog, type Wait } from '../../src/index.ts'
import { agentOf, calls, says, toolbox } from '../support/agents.ts'

// What broke elsewhere between a wait and the one who answers it, by its row in the list of known failures.

const folder = mkdtempSync(join(tmpdir(), 'threadlog-rows-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
const newLog = () => `sqlite:${join(folder, `${++files}.db`)}` as const

const answer = (threads: Threadlog, wait: Wait, result: { ok: boolean }) =>
  threads.submit({ provider: wait.provider, external_id: wait.externalId, result_id: wait.id, result })

// Threads that ran beside each other shared scratch state, and one read what another had written.
test('row 5: fifty threads beside each other read nothing of one another', async () => {
  const { tools } = toolbox()
  await using threads = await openThreadlog({ log: newLog(), application: 'test' })
  const names = Array.from({ length: 50 }, (_, i) => `thread_${i}x`)
  await Promise.all(
    names.map(async (thread, n) => {
      const agent = agentOf([calls(['c1', 'plain', { n }], ['c2', 'far', { n }]), says(`done ${thread}`)], Object.values(tools))
      const { waits } = await threads.run(agent, { thread, input: `tag ${thread}` })
      await answer(threads, waits[0]!, { ok: n % 2 === 0 })
      expect(await threads.run(agent, { thread })).toMatchObject({ status: 'completed', output: `done ${thread}` })
    }),
  )
  for (const thread of names) {
    const text = (await threads.thread(thread).state()).toText()
    expect(new Set(text.match(/thread_\d+x/g))).toEqual(new Set([thread]))
    expect(JSON.parse(text).message_history[1].parts[0].args).toContain(thread.slice(7, -1))
  }
})

// A wait made in a loop was not registered yet when its answer came. Here an id that can be read is a wait that can be answered.
test('rows 18, 40: each wait of a loop is answered the moment its id can be read, and the run goes on', async () => {
  const rounds = 40
  const { tools } = toolbox()
  const script = Array.from({ length: rounds }, (_, n) => calls([`c${n}`, 'far', { n }]))
  const agent = agentOf([...script, says('all of them')], Object.values(tools))
  const log = newLog()
  await using threads = await openThreadlog({ log, application: 'test', agents: [agent] })
  await using provider = await openThreadlog({ log, application: 'test', agents: [agent] })
  await using _engine = await threads.serve()
  const run = await threads.start({ agent: 'agent', thread: 'thread_a', input: 'go' })
  const verdicts: string[] = []
  for await (const wait of provider.waits({ thread: 'thread_a', follow: true })) {
    verdicts.push((await answer(provider, wait, { ok: true })).verdict)
    if (verdicts.length === rounds) break
  }
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'all of them' })
  expect(verdicts).toEqual(Array(rounds).fill('accepted'))
})

// What was stored was found only by the session that had stored it.
test('row 80: after a restart a wait is found by its owner, its external id, and its provider', async () => {
  const { tools } = toolbox()
  const agent = agentOf([calls(['c1', 'far', { n: 1 }]), says('done')], Object.values(tools))
  const log = newLog()
  const asked = await openThreadlog({ log, application: 'test' })
  const { waits } = await asked.run(agent, { user: 'u-17', thread: 'thread_a', input: 'go' })
  await asked.close()

  await using threads = await openThreadlog({ log, application: 'test', agents: [agent] })
  const found: Wait[] = []
  for await (const wait of threads.waits({ user: 'u-17' })) found.push(wait)
  expect(found.map(({ id }) => id)).toEqual([waits[0]!.id])
  const listed = await threads.continuations('outside').listPending()
  expect(JSON.stringify(listed)).toContain(waits[0]!.id)
  expect((await answer(threads, found[0]!, { ok: true })).verdict).toBe('accepted')
  expect(await threads.run(agent, { user: 'u-17', thread: 'thread_a' })).toMatchObject({ output: 'done' })
})
