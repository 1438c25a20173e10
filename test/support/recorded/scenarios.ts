import { z } from 'zod'
import { Payload, sha256Hex } from '../../../src/base/index.ts'
import { apiSource, outcomeDigest } from '../../../src/continuations/index.ts'
import { ContinuationFailure, defineTool, externalTool, type Threadlog, type Wait } from '../../../src/index.ts'
import { agentOf, calls, says } from '../agents.ts'
import { call, importedState, opened } from '../thread-drafts.ts'
import type { Stage } from './stage.ts'

/** One story about one thread. What it did is what stands in the log: it checks nothing. */
export type Scenario = (stage: Stage) => Promise<void>

const input = z.object({ n: z.int() })
const note = defineTool({ name: 'note', description: 'Notes a number', input, execute: ({ n }) => ({ noted: n }) })
const guarded = defineTool({
  ...{ name: 'guarded', description: 'Needs a yes', input, needsApproval: true },
  execute: ({ n }, { approved }) => ({ did: n, approved }),
})
const far = externalTool({
  name: 'far',
  description: 'Somebody else does it',
  provider: 'outside',
  input,
  result: z.object({ ok: z.boolean() }),
})
const broken = defineTool({
  ...{ name: 'broken', description: 'Throws', input },
  execute: () => {
    throw new RangeError('no')
  },
})

const waitOf = (waits: readonly Wait[], kind: Wait['kind']): Wait => waits.find((wait) => wait.kind === kind) as Wait
const QUESTION = {
  questions: [
    {
      question: 'Which one?',
      header: 'Which',
      options: [
        { label: 'Left', description: 'The left one' },
        { label: 'Right', description: 'The right one' },
      ],
    },
  ],
}

const text: Scenario = async (stage) => {
  const threads = await stage.process()
  const agent = agentOf([says('Hello. Grüße, 東京 😀'), says('Still here.')], [], { system: 'You greet.' })
  await threads.run(agent, { thread: stage.thread, input: 'Hi!' })
  await stage.later()
  await threads.run(agent, { thread: stage.thread, input: ['And now?', { kind: 'image-url', url: 'https://example.com/a.png' }] })
}

const tools: Scenario = async (stage) => {
  const threads = await stage.process()
  const made = [
    calls(['c1', 'note', { n: 1 }], ['c2', 'note', { n: 2 }], ['c3', 'note', { n: 'x' }], ['c4', 'nobody', {}]),
    calls(['c1', 'note', { n: 3 }], ['c2', 'broken', { n: 4 }]),
    says('Noted.'),
  ]
  await threads.run(agentOf(made, [note, broken]), { thread: stage.thread, input: 'Note.', toolErrors: 'return' })
}

const suspension: Scenario = async (stage) => {
  const threads = await stage.process()
  const made = calls(
    ['c1', 'note', { n: 1 }],
    ['c2', 'guarded', { n: 2 }],
    ['c3', 'far', { n: 3 }],
    ['c4', 'ask_user_question', QUESTION],
  )
  const agent = agentOf([made, says('All in.')], [note, guarded, far], { questions: true })
  const { waits } = await threads.run(agent, { thread: stage.thread, input: 'Go.' })
  const { id, digest } = waitOf(waits, 'approval')
  for (const act of [
    () => threads.answer(waitOf(waits, 'question').id, { answers: { 'Which one?': 'Left' } }, { by: 'user', commandId: 'k1' }),
    () =>
      threads.submit(
        { provider: 'outside', external_id: waitOf(waits, 'external').externalId, result_id: 'r1', result: { ok: true } },
        { commandId: 'k2' },
      ),
    () => threads.approve(id, { digest, by: 'lead', commandId: 'k3' }),
  ]) {
    await stage.later()
    await act()
  }
  await threads.run(agent, { thread: stage.thread })
}

/** Suspends on one guarded call, lets it be decided, and resumes. */
const decided =
  (decide: (threads: Threadlog, wait: Wait) => Promise<unknown>): Scenario =>
  async (stage) => {
    const threads = await stage.process()
    const agent = agentOf([calls(['c1', 'guarded', { n: 1 }]), says('So be it.')], [guarded])
    const { waits } = await threads.run(agent, { thread: stage.thread, input: 'Do it.' })
    await stage.later()
    await decide(threads, waitOf(waits, 'approval'))
    await threads.run(agent, { thread: stage.thread })
  }

const denial = decided((threads, { id, digest }) =>
  threads.deny(id, { digest, reason: 'Too much.', by: 'lead', commandId: 'k1' }),
)

const override = decided((threads, { id, digest }) =>
  threads.approve(id, { digest, overrideArgs: { n: 7 }, reason: 'Seven will do.', by: 'lead', commandId: 'k1' }),
)

const externalFailure: Scenario = async (stage) => {
  const threads = await stage.process()
  const agent = agentOf([calls(['c1', 'far', { n: 1 }]), says('It failed.')], [far])
  const { waits } = await threads.run(agent, { thread: stage.thread, input: 'Ask.' })
  const failure = { code: 'no_funds', retryable: true }
  await threads.submit({ provider: 'outside', continuation_id: waitOf(waits, 'external').id, failure }, { commandId: 'k1' })
  await threads.run(agent, { thread: stage.thread })
}

/** A suspended run, a running one and two that are queued are cancelled; new input gives up a suspension. */
const cancel: Scenario = async (stage) => {
  const threads = await stage.process()
  const { thread } = stage
  const waiting = agentOf(() => calls(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }]), [far])
  await threads.run(waiting, { thread, input: 'Ask.' })
  await stage.later()
  await threads.thread(thread).cancel({ reason: 'not needed', commandId: 'k1' })

  const hanging = agentOf([{ parts: [{ text: 'Let me' }], then: 'hang' }], [])
  const stream = threads.stream(hanging, { thread, input: 'Think.' })
  for await (const event of stream) if (event.type === 'text') await threads.thread(thread).cancel({ reason: 'too slow' })
  await stream.result

  for (const commandId of ['k2', 'k3', 'k2']) await threads.start({ agent: 'nobody', thread, input: 'Later.', commandId })
  await threads.thread(thread).cancel()

  await threads.run(waiting, { thread, input: 'Ask again.' })
  await threads.run(agentOf([says('Never mind.')], []), { thread, input: 'Forget it.' })
}

const failure: Scenario = async (stage) => {
  const threads = await stage.process()
  const { thread } = stage
  await threads.run(agentOf([{ parts: [], fail_before: true }, says('At last.')], []), { thread, input: 'Try.' })
  await threads.run(agentOf([{ parts: [{ text: 'I was about to' }], then: 'disconnect' }], []), { thread, input: 'Speak.' })
  await threads.run(
    agentOf(() => ({ parts: [], fail_before: true }), []),
    { thread, input: 'Try again.' },
  )
  const throwing = agentOf([calls(['c1', 'broken', { n: 1 }])], [broken])
  await threads.run(throwing, { thread, input: 'Break.' }).catch(() => {})
  await threads.run(agentOf([says('I see.')], []), { thread, input: 'Go on.' })
}

/** The process ends while two calls are open, one of which may be repeated; the next one takes the run over. */
const recovery: Scenario = async (stage) => {
  const { thread } = stage
  const started = Promise.withResolvers<void>()
  const hang = () => {
    started.resolve()
    return new Promise(() => {})
  }
  const toolsOf = (execute: () => unknown) => [
    defineTool({ name: 'once', description: 'Not to be repeated', input, execute }),
    defineTool({ name: 'safe', description: 'May be repeated', input, recovery: 'retryable', execute }),
  ]
  const made = calls(['c1', 'once', { n: 1 }], ['c2', 'safe', { n: 2 }])
  const first = await stage.process()
  const running = first.run(agentOf([made], toolsOf(hang)), { thread, input: 'Work.' }).catch(() => {})
  await started.promise
  await first.close()
  await running
  await stage.later(60_000)
  const second = await stage.process()
  await second.run(
    agentOf(
      [says('Recovered.')],
      toolsOf(() => 'done'),
    ),
    { thread },
  )
}

/** The agent changes: another system prompt, and a tool that a suspended run waits for is gone for a while. */
const revisions: Scenario = async (stage) => {
  const threads = await stage.process()
  const { thread } = stage
  await threads.run(agentOf([says('One.')], [], { system: 'You are terse.' }), { thread, input: 'Count.' })
  const wordy = (script: Parameters<typeof agentOf>[0], revision: string, offered = [guarded]) =>
    agentOf(script, offered, { system: 'You are wordy.', revision })
  const { waits } = await threads.run(wordy([calls(['c1', 'guarded', { n: 2 }])], '2'), { thread, input: 'Go on counting.' })
  await threads.approve(waitOf(waits, 'approval').id, { commandId: 'k1' })
  await threads.run(wordy([], '3', []), { thread })
  await stage.later()
  await threads.run(wordy([says('Two, and so on.')], '4'), { thread })
}

const quarantine: Scenario = async (stage) => {
  const threads = await stage.process()
  const { thread } = stage
  await threads.run(agentOf([says('Fine.')], []), { thread, input: 'How are you?' })
  await stage.append(
    threads,
    { type: 'continuation.claimed/1', data: { continuation_id: 'nobody', revision: 1 } },
    { type: 'capability.written/1', data: { capability_id: 'notes', version: '1', data: Payload.of({ after: true }) } },
  )
  const actor = { kind: 'operator', id: 'on-call', source: 'cli' }
  const { quarantine: found } = await threads.store.fold(stage.stream)
  await stage.later()
  await threads.store.repair(stage.stream, found?.version ?? 0, 'written by hand', actor)
  await threads.run(agentOf([says('Better.')], []), { thread, input: 'And now?' })
}

/** Of two waits one is answered and the other runs out of time; the model is told of both. */
const expiry: Scenario = async (stage) => {
  const threads = await stage.process()
  const soon = externalTool({
    ...{ name: 'soon', description: 'Somebody else does it, soon', provider: 'outside', input, deadlineMs: 60_000 },
  })
  const made = calls(['c1', 'soon', { n: 1 }], ['c2', 'far', { n: 2 }])
  const agent = agentOf([made, says('One came too late.')], [soon, far])
  const { waits } = await threads.run(agent, { thread: stage.thread, input: 'Ask.' })
  await stage.later()
  await threads.submit({ provider: 'outside', continuation_id: waits[1]?.id ?? '', result: { ok: true } }, { commandId: 'k1' })
  await stage.later(3_600_000)
  await threads.run(agent, { thread: stage.thread })
}

/** A state from elsewhere, with capabilities and a call nobody has answered. */
const imported: Scenario = async (stage) => {
  const threads = await stage.process()
  const { thread } = stage
  const key = { application: 'recorded', user: 'default', thread }
  await stage.append(threads, opened(key, 'imported', importedState(thread, [call('old-1')])))
  await stage.append(
    threads,
    { type: 'capability.written/1', data: { capability_id: 'plan', version: '2', data: Payload.of({ steps: [1, 2] }) } },
    { type: 'capability.deleted/1', data: { capability_id: 'notes' } },
  )
  await threads.run(agentOf([says('Where were we?')], []), { thread, input: 'Go on.' })
}

/** A host with its own loop: what it waits for, finishes, gives up and deletes; and what it takes from a session that died. */
const foreign: Scenario = async (stage) => {
  const threads = await stage.process()
  const store = threads.continuationStore()
  const own = { userId: 'default', sessionId: stage.thread, runId: 'run-1' }
  const scope = { applicationId: 'recorded', ...own }
  const jobs = threads.continuations('jobs')
  const wait = { capability: 'job.run', schemaId: 'job/v1' }
  await store.beginRun({ scope, framework: 'langgraph' })
  await store.putCheckpoint({ scope, checkpointId: 'c1', payload: { step: 1 } })
  const done = await jobs.suspend({ ...own, ...wait, externalId: 'job-1' })
  await stage.later()
  const { continuationId } = await jobs.arm(done)
  await jobs.complete({ ...own, externalId: 'job-1', schemaId: 'job/v1', result: { ok: true }, validate: (value) => value })
  await jobs.claim({ ...own, continuationId, expectedRevision: 2, leaseMs: 1_000 })
  await stage.later(1_000)
  const { revision: fence } = await jobs.claim({ ...own, continuationId, expectedRevision: 3, leaseMs: 1_000 })
  await jobs.acknowledge({ ...own, continuationId, fence })
  const lease = { continuationId, fence }
  const now = stage.now()
  const failing = await jobs.suspend({ ...own, ...wait, externalId: 'job-2', expiresAt: now + 60_000, lease })
  await stage.later(30_000)
  await jobs.heartbeat({ externalId: 'job-2' })
  await jobs.cancel({ record: failing, failure: new ContinuationFailure({ code: 'user_cancelled' }) })
  await store.deleteRun(scope)
  const data = { reservation: stage.stream, generation: 1 }
  await stage.append(threads, { type: 'reservation.withdrawn/1', data })
}

/** A tool hears more from the user while it works; another is cut off, and a person finds out what it did. */
const steered: Scenario = async (stage) => {
  const threads = await stage.process()
  const { thread } = stage
  const working = defineTool({
    ...{ name: 'working', description: 'Works', input },
    execute: async () => {
      await threads.thread(thread).steer('And hurry.', { id: 'hurry' })
      return { done: true }
    },
  })
  const agent = agentOf([calls(['c1', 'working', { n: 1 }]), calls(['c2', 'broken', { n: 2 }])], [working, broken])
  await threads.run(agent, { thread, input: 'Work.' }).catch(() => {})
  await threads.thread(thread).reconcile('c2', { result: { found: 2 } }, { by: 'lead', reason: 'seen in the ledger' })
}

/** Something unique, taken and given back. */
const reservation: Scenario = async (stage) => {
  const threads = await stage.process()
  const holder = { application_id: 'recorded', user_id: 'default', thread_id: stage.thread, id: 'run-1' }
  await stage.append(threads, { type: 'reservation.taken/1', data: { kind: 'run_id', generation: 1, holder } })
  await stage.append(threads, { type: 'reservation.released/1', data: { generation: 1 } })
}

/** A result that comes before anything else, is held, and is told to be nobody's in the end; a second one waits still. */
const early: Scenario = async (stage) => {
  const threads = await stage.process()
  const key = sha256Hex('job-1')
  const record = Payload.of({ application_id: 'recorded', provider: 'jobs', external_id: 'job-1', result: { ok: true } })
  const holding = { application_id: 'recorded', provider: 'jobs', external_id_key: key, record }
  for (const command_id of ['first', 'second']) {
    const source = apiSource('submit', command_id)
    await stage.append(threads, { type: 'reservation.held/1', data: { ...holding, source, expires_at: stage.now() + 60_000 } })
  }
  const digest = outcomeDigest({ result: { ok: true } })
  const receipt = Payload.of({ source: { api: 'submit', command_id: 'first' }, sequence: 2, final: true, verdict: 'unknown' })
  await stage.append(threads, { type: 'reservation.settled/1', data: { held: 1, digest, receipt } })
}

/** By name of the file. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  ...{ text, tools, suspension, denial, override, cancel, failure, recovery, revisions, quarantine, expiry, imported },
  ...{ early, foreign, reservation, steered },
  'external-failure': externalFailure,
}
