import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { openThreadlog, type RunHandle, type Threadlog, type Wait } from '../../src/index.ts'
import { threadStatus } from '../../src/projections/index.ts'
import { checkStream, codeOf, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { effects } from '../support/processes/ledger.ts'
import { type Place, places, seeded } from '../support/processes/place.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()
const opened: Threadlog[] = []
afterEach(async () => {
  for (const threads of opened.splice(0)) await threads.close()
})

async function open({ log, ledger }: Place, stalls = false): Promise<Threadlog> {
  const threads = await openThreadlog({ log, application: 'shop', agents: [workerAgent({ ledger, stalls })] })
  opened.push(threads)
  return threads
}

const start = (threads: Threadlog, thread: string, ...steps: Parameters<typeof script>): Promise<RunHandle> =>
  threads.start({ agent: 'worker', thread, input: script(...steps) })

const eventsOfThread = (threads: Threadlog, thread: string) => eventsOf(threads.backend, threads.thread(thread).stream)

/** One invocation, one end, nothing open, a history any model takes. */
async function expectOneEnd(threads: Threadlog, run: RunHandle): Promise<string> {
  const result = await run.result()
  const state = await checkStream(threads.store, threads.thread(run.thread).stream)
  expect(threadStatus(state)).toBe('idle')
  expect([...state.waits.keys()]).toEqual([])
  const ends = (await eventsOfThread(threads, run.thread)).filter(({ type }) =>
    ['run.completed/1', 'run.failed/1', 'run.cancelled/1'].includes(type),
  )
  expect(ends).toHaveLength(1)
  expect(state.invocations.get(run.invocationId)?.status).toBe(result.status)
  return result.status
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5)
}

async function firstWait(threads: Threadlog, thread: string): Promise<Wait> {
  for await (const wait of threads.waits({ thread, follow: true })) return wait
  throw new Error('closed')
}

const late = (threads: Threadlog, { id }: Wait) =>
  threads.submit({ provider: 'desk', continuation_id: id, result: { said: 'late' } })

test('a run with a hanging tool: its call is unknown, the run cancelled', async () => {
  const files = place()
  const threads = await open(files, true)
  await threads.serve()
  const run = await start(
    threads,
    'hang_1',
    [
      { id: 'c1', name: 'note' },
      { id: 'c2', name: 'stall' },
    ],
    'done',
  )
  await until(() => effects(files.ledger).length === 2)
  await threads.thread('hang_1').cancel({ reason: 'enough' })
  expect(await expectOneEnd(threads, run)).toBe('cancelled')
  const events = await eventsOfThread(threads, 'hang_1')
  expect(dispatchedCalls(events)).toMatchObject([
    { tool: 'note', settlement: 'returned' },
    { tool: 'stall', settlement: 'unknown', reason: 'interrupted' },
  ])
  expect(events.findLast(({ type }) => type === 'request.composed/1')?.data).toMatchObject({ state: 'interrupted' })
  // The thread goes on afterwards.
  expect(await (await start(threads, 'hang_1', 'again')).result()).toMatchObject({ status: 'completed', output: 'again' })
})

test('a run with a hanging model: what it had said is kept as interrupted', async () => {
  const threads = await open(place(), true)
  await threads.serve()
  const run = await start(threads, 'model_1', { hang: 'half an ans' })
  const model = threads.backend.events
  await until(async () => (await model.head(threads.thread('model_1').stream))?.version === 4)
  await delay(20)
  await threads.thread('model_1').cancel()
  expect(await expectOneEnd(threads, run)).toBe('cancelled')
  const responses = (await eventsOfThread(threads, 'model_1')).flatMap((event) =>
    event.type === 'model.responded/1' ? [event.data.message.value] : [],
  )
  expect(responses).toMatchObject([{ state: 'interrupted', parts: [{ content: 'half an ans' }] }])
})

test('a suspended run: cancelled at once with its waits, and a late result is told so', async () => {
  const threads = await open(place())
  const engine = await threads.serve()
  const run = await start(
    threads,
    'wait_1',
    [
      { id: 'c1', name: 'ask' },
      { id: 'c2', name: 'confirm' },
    ],
    'done',
  )
  const wait = await firstWait(threads, 'wait_1')
  await until(async () => threadStatus(await threads.store.load(threads.thread('wait_1').stream)) === 'waiting')
  await engine.close()
  await threads.thread('wait_1').cancel({ commandId: 'stop-1' })
  expect(await expectOneEnd(threads, run)).toBe('cancelled')
  expect((await late(threads, wait)).verdict).toBe(wait.kind === 'external' ? 'cancelled' : 'unknown')
  const cancelled = threads.backend.tables.all('SELECT cancelled FROM threadlog_requests WHERE cancelled = 1')
  expect(cancelled).toHaveLength(2)
  const before = await eventsOfThread(threads, 'wait_1')
  await threads.thread('wait_1').cancel()
  expect(await eventsOfThread(threads, 'wait_1')).toHaveLength(before.length)
})

test('a queued run: cancelled at once, and never begun', async () => {
  const files = place()
  const threads = await open(files)
  const run = await start(threads, 'queue_1', [{ id: 'c1', name: 'note' }], 'done')
  await threads.thread('queue_1').cancel()
  expect(await expectOneEnd(threads, run)).toBe('cancelled')
  await threads.serve({ sweepMs: 20 })
  expect((await (await start(threads, 'queue_1', 'next')).result()).output).toBe('next')
  expect(effects(files.ledger)).toEqual([])
})

test('the owner is dead: whoever asks cuts the run at once', async () => {
  const files = place()
  const threads = await open(files)
  const owner = await Child.start('client.ts', { ...files, stalls: true })
  await owner.must('serve')
  const run = await start(threads, 'dead_1', [{ id: 'c1', name: 'stall' }], 'done')
  await until(() => effects(files.ledger).length === 1)
  await owner.kill()
  await threads.thread('dead_1').cancel()
  expect(await expectOneEnd(threads, run)).toBe('cancelled')
  expect(dispatchedCalls(await eventsOfThread(threads, 'dead_1'))).toMatchObject([
    { settlement: 'unknown', reason: 'interrupted' },
  ])
})

test('the owner freezes, is asked to stop, and dies: another engine cuts, and nothing goes on', async () => {
  const files = place()
  const threads = await open(files)
  const owner = await Child.start('client.ts', { ...files, stalls: true })
  await owner.must('serve')
  const run = await start(threads, 'dead_2', [{ id: 'c1', name: 'stall_again' }], 'done')
  await until(() => effects(files.ledger).length === 1)
  process.kill(owner.pid, 'SIGSTOP')
  await threads.thread('dead_2').cancel()
  expect(threadStatus(await threads.store.load(threads.thread('dead_2').stream))).toBe('running')
  await owner.kill()
  await threads.serve({ sweepMs: 20 })
  expect(await expectOneEnd(threads, run)).toBe('cancelled')
  expect(effects(files.ledger)).toHaveLength(1)
})

test('aborting the signal of a run cancels it, also one that resumes', async () => {
  const files = place()
  const threads = await open(files, true)
  const steps = [[{ id: 'c1', name: 'ask' }], [{ id: 'c2', name: 'stall' }]] as const
  const { waits } = await threads.run('worker', { thread: 'abort_1', input: script(...steps) })
  await late(threads, waits[0] as Wait)
  const caller = new AbortController()
  const running = threads.run('worker', { thread: 'abort_1', signal: caller.signal })
  await until(() => effects(files.ledger).length === 1)
  caller.abort()
  expect(await running).toMatchObject({ status: 'cancelled' })
  expect(await codeOf(() => threads.run('worker', { thread: 'abort_1', input: script('never'), signal: caller.signal }))).toBe(
    'aborted',
  )
  const state = await checkStream(threads.store, threads.thread('abort_1').stream)
  expect([...state.runs].map(([, end]) => end.status)).toEqual(['suspended', 'cancelled'])
})

test('cancels that race results: each thread has one end, and a cancel is never lost', async () => {
  const files = place()
  const threads = await open(files, true)
  await threads.serve({ sweepMs: 100 })
  await using first = await Child.start('client.ts', files)
  await using second = await Child.start('client.ts', files)
  const random = seeded(5)
  const seen = new Set<string>()
  for (let round = 0; round < 24; round++) {
    const thread = `race_${round}`
    // Once it is resumed the run never ends by itself.
    const run = await start(threads, thread, [{ id: 'c1', name: 'ask' }], [{ id: 'c2', name: 'stall' }])
    const wait = await firstWait(threads, thread)
    const result = JSON.stringify({ provider: 'desk', continuation_id: wait.id, result: { said: 'yes' } })
    const submitting = first.must<string>('submit', result)
    await delay(random() * 12)
    const cancelling = second.must('cancel', thread)
    const verdict = await submitting
    await cancelling
    expect(await expectOneEnd(threads, run)).toBe('cancelled')
    expect(['accepted', 'cancelled']).toContain(verdict)
    const closed = (await threads.store.load(threads.thread(thread).stream)).closedWaits.get(wait.id)
    seen.add(`${verdict} ${closed?.status}`)
    expect((await late(threads, wait)).verdict).toBe(verdict === 'accepted' ? 'conflict' : 'cancelled')
  }
  for (const outcome of seen) expect(['accepted claimed', 'accepted abandoned', 'cancelled cancelled']).toContain(outcome)
}, 60_000)
