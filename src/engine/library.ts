import { reject, retryLater, ThreadlogError } from '../base/index.ts'
import { type ThreadKey, threadStream } from '../events/index.ts'
import { type Agent, type AttemptEnd, open, request } from '../harness/index.ts'
import type { Delta } from '../models/index.ts'
import { type Proposal, type ThreadState, type ThreadStore, threadStatus } from '../projections/index.ts'
import { cancelOwn } from './cancel.ts'
import { runResult } from './results.ts'
import type { Runner } from './runner.ts'
import type { RunOptions, RunResult } from './types.ts'

export interface LibraryDeps {
  store: ThreadStore
  runner: Runner
  application: string
}

/**
 * Runs an agent on a thread in this process until the run ends: completed, failed, cancelled, or suspended on something only the
 * outside can answer. A resolved suspension is resumed; a run whose owner died is recovered first.
 * @throws ThreadlogError `run_active` (retry), `thread_quarantined`, `thread_id_invalid`, `input_too_large`, `tool_threw`
 */
export async function runInProcess(
  deps: LibraryDeps,
  agent: Agent,
  o: RunOptions,
  onDelta?: (delta: Delta) => void,
): Promise<RunResult> {
  const { store, runner } = deps
  const key: ThreadKey = { application: deps.application, user: o.user ?? 'default', thread: o.thread ?? store.ids.thread() }
  const stream = threadStream(key)
  const drive = { deps: o.bindings?.deps, onDelta }
  const stopCancelling = cancelOn(deps, stream, o.signal)
  try {
    for (;;) {
      const state = await store.load(stream)
      const status = threadStatus(state)
      if (o.signal?.aborted) throw aborted()
      const goesOn = status === 'running' || (status === 'resolved' && o.input === undefined)
      if (goesOn && state.run?.agent.name !== agent.name) throw mismatch(state, agent)
      if (status === 'running') {
        const end = await takeOver(deps, state, agent, drive)
        if (o.input === undefined) return await ended(deps, stream, end)
      } else if (status === 'resolved' && o.input === undefined)
        return await ended(deps, stream, await runner.resume(stream, agent, drive))
      else if (status === 'waiting' && o.input === undefined) return standing(state)
      else if (state.requested.length > 0) throw busy('Runs are queued on this thread.')
      else return await fresh(deps, key, agent, o, drive)
    }
  } finally {
    stopCancelling()
  }
}

const aborted = (): ThreadlogError => reject('aborted', 'The signal was aborted before the run began.')

const mismatch = (state: ThreadState, agent: Agent): ThreadlogError =>
  reject('agent_mismatch', 'The run to go on with is of another agent.', {
    path: 'agent',
    expected: state.run?.agent.name ?? '',
    details: { given: agent.name },
    hint: 'Run that agent, or cancel the thread first.',
  })

const busy = (message: string): ThreadlogError => retryLater('run_active', message, { hint: 'Wait for it to end, or cancel it.' })

async function takeOver({ runner }: LibraryDeps, state: ThreadState, agent: Agent, drive: Drive): Promise<AttemptEnd> {
  const { run } = state
  if (run?.owner.kind !== 'library' || !(await runner.isUndriven(run))) throw busy('A run is active on this thread.')
  return runner.recover(state, agent, 'owner-gone', drive)
}

type Drive = { deps: unknown; onDelta?: (delta: Delta) => void }

async function fresh(deps: LibraryDeps, key: ThreadKey, agent: Agent, o: RunOptions, drive: Drive): Promise<RunResult> {
  const { store, runner } = deps
  const stream = threadStream(key)
  const runId = store.ids.run()
  const options = { toolRecovery: o.toolRecovery ?? 'declared', toolErrors: o.toolErrors ?? 'throw' } as const
  const wanted = { runId, agent: agent.name, input: o.input ?? null, options, commandId: null }
  const before = (proposal: Proposal) => request(open(proposal, key), wanted)
  return ended(deps, stream, await runner.start(stream, runId, agent, drive, before))
}

/** Turns an abort of the caller's signal into a cancel of the run. */
function cancelOn({ store }: LibraryDeps, stream: string, signal: AbortSignal | undefined): () => void {
  if (!signal) return () => {}
  const cancel = () => void cancelOwn(store, stream, 'aborted by its caller').catch(() => {})
  signal.addEventListener('abort', cancel, { once: true })
  return () => signal.removeEventListener('abort', cancel)
}

async function ended({ store }: LibraryDeps, stream: string, end: AttemptEnd): Promise<RunResult> {
  if (end.is === 'not-taken' || end.is === 'superseded') throw busy('Another process drives this thread.')
  if (end.is === 'stopped') throw retryLater('closed', 'The log was closed while the run was going on; it will be recovered.')
  const result = runResult(await store.load(stream), end.end)
  if (end.thrown === undefined) return result
  throw new ThreadlogError('tool_threw', {
    disposition: 'reject',
    message: 'A tool threw an exception; its call is recorded as unknown and the run as failed.',
    cause: end.thrown,
    details: { run_id: result.runId, version: result.version },
    hint: 'The cause is the exception. Pass `toolErrors: "return"` to let the model see that the call failed.',
  })
}

/** A thread that still waits: the suspension as it stands, without a new run. */
function standing(state: ThreadState): RunResult {
  const end = state.run && state.runs.get(state.run.runId)
  if (!end) throw busy('The thread is suspended.')
  return runResult(state, end)
}
