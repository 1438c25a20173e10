import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type JsonObject, type JsonValue, Payload, systemClock } from '../../src/base/index.ts'
import type { LogEvent } from '../../src/events/index.ts'
import { defineAgent, defineCapability, defineTool, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import { type LogBackend, openLog, type RecordedEvent } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { agentOf, calls, eventsOf, says, toolbox } from '../support/agents.ts'
import { gatedLog } from '../support/gated-log.ts'
import { checkStream } from '../support/processes/checks.ts'
import { places } from '../support/processes/place.ts'

// What broke elsewhere while something was waited for, or handed over, by its row in the list of known failures.

const place = places()

const answer = (threads: Threadlog, id: string, result: JsonValue = { ok: true }) =>
  threads.submit({ provider: 'outside', continuation_id: id, result })

/** Ids in the records that ask for an answer, in their order. */
async function requestedIds({ topics }: LogBackend): Promise<string[]> {
  const ids: string[] = []
  for await (const batch of topics.scan('requests'))
    for (const { value } of batch) {
      const { continuation_id: id, cancelled } = JSON.parse(Buffer.from(value).toString())
      if (!cancelled) ids.push(id)
    }
  return ids
}

// A run waited for what only its own thread could bring about, and its key was blocked for ever.
// Row 22: a wait that nobody answers is told of, once; the thread is free again by a cancel, by new input, or when its deadline comes.
test('Row 22: a wait that nobody outside can answer raises an alert and can be freed', async () => {
  const backend = await openLog('memory')
  let late = 0
  const clock = { ...systemClock, now: () => Date.now() + late }
  const { tools } = toolbox()
  const dated = { name: 'dated', description: 'Far', provider: 'nobody', input: z.object({ n: z.int() }), deadlineMs: 120_000 }
  const agent = agentOf(
    (prompt) => {
      const text = JSON.stringify(prompt.findLast(({ role }) => role === 'user')?.content)
      if (prompt.at(-1)?.role === 'tool' || text.includes('plainly')) return says('done')
      return calls(['c1', text.includes('dated') ? 'dated' : 'far', { n: 1 }])
    },
    [tools.far, externalTool(dated)],
  )
  const alerts: string[] = []
  const threads = await openThreadlog({ log: backend, clock, agents: [agent] })
  const heard = (n: number) =>
    vi.waitFor(() => expect(alerts.length).toBeGreaterThanOrEqual(n), { timeout: 30_000, interval: 10 })
  await using engine = await threads.serve({
    sweepMs: 10,
    unansweredMs: 60_000,
    onProblem: ({ where, code, message }) => void alerts.push(`${where} ${code} ${message}`),
  })
  const stopped = await threads.start({ agent: 'agent', thread: 'thr_stopped', input: 'go' })
  const superseded = await threads.start({ agent: 'agent', thread: 'thr_superseded', input: 'go' })
  const expired = await threads.start({ agent: 'agent', thread: 'thr_expired', input: 'dated' })
  await vi.waitFor(async () => expect((await threads.waitCounts()).reduce((n, { waits }) => n + waits, 0)).toBe(3), 30_000)
  expect(alerts).toEqual([])
  late += 61_000
  await heard(3)
  for (const thread of ['thr_stopped', 'thr_superseded', 'thr_expired'])
    expect(alerts.filter((alert) => alert.startsWith(`thread ${threads.thread(thread).stream} wait_unanswered`))).toHaveLength(1)
  await threads.thread('thr_stopped').cancel()
  expect(await stopped.result()).toMatchObject({ status: 'cancelled' })
  const next = await threads.start({ agent: 'agent', thread: 'thr_superseded', input: 'plainly' })
  expect(await next.result()).toMatchObject({ status: 'completed', output: 'done' })
  expect(await superseded.result()).toMatchObject({ status: expect.stringMatching(/cancelled|failed/) })
  late += 60_000
  expect(await expired.result()).toMatchObject({ status: 'completed', output: 'done' })
  // Each was told of once, however often it was looked at.
  expect(alerts).toHaveLength(3)
  await engine.close()
  await threads.close()
})

// A token was good for one attempt: when the request was tried again, whoever held it answered nobody.
// Row 29: a wait belongs to the invocation; attempts to resume it, and to ask for it, change nothing about its id.
test('Row 29: through refused resumes, restarts and repeated requests a wait keeps its id, and the first token answers it', async () => {
  const { log } = place()
  const { tools } = toolbox()
  const script = [calls(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }]), says('done')]
  const fits = agentOf(script, [tools.far])
  const first = await openThreadlog({ log, agents: [fits] })
  const { waits } = await first.run(fits, { thread: 'thr_a', input: 'go' })
  const ids = waits.map(({ id }) => id)
  await answer(first, ids[0]!)
  await answer(first, ids[1]!)
  await first.close()
  // Each of these tries, and is refused before it claims anything.
  for (const revision of ['2', '3']) {
    const other = agentOf(script, [], { revision })
    await using threads = await openThreadlog({ log, agents: [other] })
    expect(await threads.run(other, { thread: 'thr_a' })).toMatchObject({ failure: { code: 'deferred_surface_mismatch' } })
    const { waits: standing } = await threads.store.load(threads.thread('thr_a').stream)
    expect([...standing.values()].map(({ id, status }) => [id, status])).toEqual(ids.map((id) => [id, 'completed']))
  }
  await using threads = await openThreadlog({ log, agents: [fits] })
  expect(await requestedIds(threads.backend)).toEqual(ids)
  expect((await answer(threads, ids[0]!)).verdict).toBe('duplicate')
  expect(await threads.run(fits, { thread: 'thr_a' })).toMatchObject({ status: 'completed', output: 'done' })
})

// A nested run that suspended came back under a new random id, and nothing addressed to the old one reached it.
// Row 43: threadlog runs no children inside of a run; the nearest of the class is any suspended run: its ids, and those of its waits, over restarts.
test('Row 43: run, invocation, waits and external ids of a suspended run are the same after every restart and when it goes on', async () => {
  const { log } = place()
  const { tools } = toolbox()
  const agent = agentOf([calls(['c1', 'far', { n: 1 }]), calls(['c2', 'far', { n: 2 }]), says('done')], [tools.far])
  const identity = async (threads: Threadlog) => {
    const { run, waits } = await threads.store.load(threads.thread('thr_a').stream)
    return { run: run?.runId, invocation: run?.invocationId, waits: [...waits.values()].map((w) => [w.id, w.externalId]) }
  }
  const first = await openThreadlog({ log, agents: [agent] })
  const asked = await first.run(agent, { thread: 'thr_a', input: 'go' })
  const before = await identity(first)
  await first.close()
  for (let restart = 0; restart < 3; restart++) {
    await using threads = await openThreadlog({ log, agents: [agent] })
    expect(await identity(threads)).toEqual(before)
  }
  await using threads = await openThreadlog({ log, agents: [agent] })
  await answer(threads, asked.waits[0]!.id)
  const again = await threads.run(agent, { thread: 'thr_a' })
  expect(again).toMatchObject({ status: 'suspended' })
  expect((await identity(threads)).invocation).toBe(before.invocation)
  await answer(threads, again.waits[0]!.id)
  expect(await threads.run(agent, { thread: 'thr_a' })).toMatchObject({ status: 'completed', output: 'done' })
})

/** A log on which a follower never hears of the first event of each type that would wake it. */
function deafOnce(backend: LogBackend, dropped: Set<string>): LogBackend {
  const { events } = backend
  const isHeard = ({ event }: RecordedEvent): boolean => {
    if (!event || dropped.has(event.type)) return true
    dropped.add(event.type)
    return false
  }
  async function* follow(...args: Parameters<typeof events.follow>) {
    for await (const records of events.follow(...args)) yield records.filter(isHeard)
  }
  const bound = <T extends object>(target: T, name: PropertyKey) => {
    const value = Reflect.get(target, name, target)
    return typeof value === 'function' ? value.bind(target) : value
  }
  const deaf = new Proxy(events, { get: (target, name) => (name === 'follow' ? follow : bound(target, name)) })
  return new Proxy(backend, { get: (target, name) => (name === 'events' ? deaf : bound(target, name)) })
}

// A token was completed and its run waited on: the message that should have woken it was lost.
// Row 39: each message that wakes a run is dropped once; the sweep finds what it was about.
test('Row 39: an engine that never hears of an event of each kind goes on all the same', async () => {
  const backend = await openLog('memory')
  const { tools } = toolbox()
  const agent = agentOf((prompt) => (prompt.at(-1)?.role === 'tool' ? says('done') : calls(['c1', 'far', { n: 1 }])), [tools.far])
  const dropped = new Set<string>()
  const threads = await openThreadlog({ log: deafOnce(backend, dropped), agents: [agent] })
  await using engine = await threads.serve({ sweepMs: 20 })
  // Not the engine's own process: its word reaches the engine by the log alone.
  const outside = await openThreadlog({ log: backend, agents: [agent] })
  const waitOf = async (thread: string): Promise<string> => {
    for await (const { id } of outside.waits({ thread, follow: true })) return id
    throw new Error('closed')
  }
  const done = await outside.start({ agent: 'agent', thread: 'thr_done', input: 'go' })
  await answer(outside, await waitOf('thr_done'))
  const queued = await outside.start({ agent: 'agent', thread: 'thr_failed', input: 'go' })
  await outside.submit({ provider: 'outside', continuation_id: await waitOf('thr_failed'), failure: { code: 'no_stock' } })
  const stopped = await outside.start({ agent: 'agent', thread: 'thr_stopped', input: 'go' })
  await waitOf('thr_stopped')
  await outside.thread('thr_stopped').cancel()
  for (const run of [done, queued]) expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  await expect(stopped.result()).resolves.toMatchObject({ status: 'cancelled' })
  for (const type of ['run.requested/1', 'run.suspended/1', 'continuation.completed/1', 'continuation.failed/1'])
    expect([...dropped]).toContain(type)
  await engine.close()
  await outside.close()
  await threads.close()
})

// Events that had arrived and not been looked at yet were gone when a workflow began anew from a shorter history.
// Row 133: as many results come out as went in, whatever is done to the thread's history meanwhile.
test('Row 133: results that arrive while snapshots, forks and compactions are made are all there afterwards', async () => {
  const { log } = place()
  const rounds = 3
  const width = 24
  const compacted: number[] = []
  const compacting = defineCapability({
    name: 'acme.compacting',
    beforeModel: (messages) => {
      if (messages.length < 5) return undefined
      compacted.push(messages.length)
      // What was asked for goes with its answers.
      return [messages[0]!, ...messages.slice(-2)]
    },
  })
  const far = externalTool({
    ...{
      name: 'far',
      description: 'Far',
      provider: 'outside',
      input: z.object({ n: z.int() }),
      result: z.object({ n: z.int() }),
    },
  })
  const script = Array.from({ length: rounds }, (_, round) =>
    calls(
      ...Array.from({ length: width }, (_, i): [string, string, { n: number }] => [
        `c${round}_${i}`,
        'far',
        { n: round * width + i },
      ]),
    ),
  )
  const model = scriptedModel([...script, says('done')])
  const agent = defineAgent({ name: 'agent', revision: '1', model, tools: [far], capabilities: [compacting] })
  await using threads = await openThreadlog({ log, agents: [agent] })
  let result = await threads.run(agent, { thread: 'thr_a', input: 'go' })
  let accepted = 0
  for (let round = 0; round < rounds; round++) {
    const sends = result.waits.map(async ({ id, arguments: args }, i) => {
      const receipt = await answer(threads, id, args)
      if (receipt.verdict === 'accepted') accepted++
      if (i % 8 === 0) await threads.thread('thr_a').fork({ thread: `thr_fork${round}x${i}` })
      // A reader that has nothing in memory, and takes its own snapshot.
      if (i % 12 === 0) await readAnew(log, (other) => other.store.load(other.thread('thr_a').stream))
    })
    await Promise.all(sends)
    result = await threads.run(agent, { thread: 'thr_a' })
  }
  expect(result).toMatchObject({ status: 'completed', output: 'done' })
  expect(accepted).toBe(rounds * width)
  expect(compacted.length).toBeGreaterThan(0)
  const settled = (await eventsOf(threads, 'thr_a')).flatMap(({ event }) =>
    event?.type === 'tool.settled/1' ? [event.data.call_id] : [],
  )
  expect(new Set(settled).size).toBe(rounds * width)
  const state = await checkStream(threads.store, threads.thread('thr_a').stream)
  const claimed = [...state.closedWaits].map(([, wait]) => wait).filter(({ status }) => status === 'claimed')
  expect(
    claimed.map(({ outcome }) => Number((outcome?.value?.value as JsonObject | undefined)?.['n'])).sort((a, b) => a - b),
  ).toEqual(Array.from({ length: rounds * width }, (_, n) => n))
})

async function readAnew(log: `sqlite:${string}`, work: (threads: Threadlog) => Promise<unknown>): Promise<void> {
  await using threads = await openThreadlog({ log })
  await work(threads)
}

// An activity ran twice: its placement was locked for so long that somebody else had been given it meanwhile.
// Row 134: what was dispatched may begin only for a time; after 20 seconds between dispatch and effect it is dispatched anew first.
test('Row 134: an effect that could not begin in time does not begin; it is dispatched again under the same key, and done once', async () => {
  const gate = gatedLog(await openLog('memory'), 'tool.dispatched/1', { after: true })
  let late = 0
  const clock = { ...systemClock, monotonic: () => performance.now() + late }
  const threads = await openThreadlog({ log: gate.log, clock })
  const dispatches = async () =>
    (await eventsOf(threads, 'thr_a')).flatMap(({ event }) =>
      event?.type === 'tool.dispatched/1' ? [event.data.idempotency_key] : [],
    )
  const done: { key: string; dispatched: number }[] = []
  const pay = defineTool({
    ...{ name: 'pay', description: 'Pays', input: z.object({ n: z.int() }) },
    execute: async (_, { idempotencyKey: key }) => {
      done.push({ key, dispatched: (await dispatches()).length })
      return { paid: true }
    },
  })
  const running = threads.run(agentOf([calls(['c1', 'pay', { n: 1 }]), says('done')], [pay]), { thread: 'thr_a', input: 'go' })
  await gate.reached
  late += 20_000
  gate.open()
  expect(await running).toMatchObject({ status: 'completed', output: 'done' })
  const keys = await dispatches()
  expect(keys).toEqual([keys[0], keys[0]])
  expect(done).toEqual([{ key: keys[0], dispatched: 2 }])
  await threads.close()
})

// Two executors could append to one log of one worker at the same time.
// Row 136: two owners write to one thread at once; each of their steps counts on from the one before, whoever made it.
test('Row 136: two owners, one thread: every step has one place, no number is left out or given twice', async () => {
  const steps = Number(process.env['THREADLOG_STEPS'] ?? 1_000)
  const { log } = place()
  const owners = [await openThreadlog({ log }), await openThreadlog({ log })]
  const { tools } = toolbox()
  await owners[0]!.run(agentOf([says('done')], [tools.plain]), { thread: 'thr_a', input: 'go' })
  const { stream } = owners[0]!.thread('thr_a')
  const begun = (await owners[0]!.store.load(stream)).version
  const step = async ({ store, backend }: Threadlog): Promise<void> => {
    await store.commit(
      stream,
      ({ capabilities }) => {
        const n = Number(capabilities.get('count')?.data.value ?? 0) + 1
        return {
          context: {
            stream,
            now: store.clock.now(),
            actor: { kind: 'api', id: backend.owners.self, source: '' },
            runId: null,
            attempt: null,
          },
          drafts: [{ type: 'capability.written/1', data: { capability_id: 'count', version: '1', data: Payload.of(n) } }],
        }
      },
      Number.POSITIVE_INFINITY,
    )
  }
  await Promise.all(
    owners.map(async (owner) => {
      for (let i = 0; i < steps / 2; i++) await step(owner)
    }),
  )
  const events = (await eventsOf(owners[1]!, 'thr_a')).flatMap(({ event }) => event ?? [])
  expect(events.map(({ version }) => version)).toEqual(events.map((_, i) => i + 1))
  const counted = events.flatMap((event: LogEvent) => (event.type === 'capability.written/1' ? [event.data.data.value] : []))
  expect(counted).toEqual(Array.from({ length: steps }, (_, i) => i + 1))
  for (const owner of owners) expect((await checkStream(owner.store, stream)).version).toBe(begun + steps)
  expect(new Set(events.slice(begun).map(({ actor }) => actor.id)).size).toBe(2)
  for (const owner of owners) await owner.close()
}, 300_000)
