import { type JsonValue, reject, retryLater, ThreadlogError } from '../base/index.ts'
import { expireThread, isAnyOverdue } from '../continuations/index.ts'
import {
  type Agent,
  type AttemptEnd,
  callerMismatch,
  checkSuspension,
  definitionError,
  open,
  request,
  SURFACE_MISMATCH,
  seenBy,
  storeMissing,
  usesStore,
} from '../harness/index.ts'
import type { Delta } from '../models/index.ts'
import { type Proposal, type ThreadState, type ThreadStore, threadStatus } from '../projections/index.ts'
import { answerWaits, type SettleAnswer } from './answer-waits.ts'
import { cancelOwn, cutAtOnce } from './cancel.ts'
import { checkHead, type PreparedRun, prepareRun } from './prepare-run.ts'
import { resultOf } from './results.ts'
import type { DriveOptions, Runner } from './runner.ts'
import type { RunOptions, RunResult } from './types.ts'

export interface LibraryDeps {
  store: ThreadStore
  runner: Runner
  application: string
  /** Settles an answer of the caller to a wait of this log. */
  settle: SettleAnswer
}

/** How a run is watched and stopped. */
export interface Watch {
  onDelta?: ((delta: Delta) => void) | undefined
  /** True: cancelled before it began. */
  cancelled?: (() => boolean) | undefined
  /** Called with the id of each run this call is about to drive. */
  onRun?: ((runId: string) => void) | undefined
}

/**
 * Runs an agent on a thread in this process until the run ends: completed, failed, cancelled, or suspended on something only the
 * outside can answer. A resolved suspension is resumed; a run whose owner died is recovered first.
 * @throws ThreadlogError as {@link prepareRun}; `run_active` (retry), `thread_quarantined`, `thread_id_invalid`, `thread_moved`, `input_too_large`,
 *   `state_too_large`, `suspension_open`, `tool_threw`, `deferred_surface_mismatch`
 */
export async function runInProcess(deps: LibraryDeps, agent: Agent, o: RunOptions): Promise<RunResult> {
  return runPrepared(deps, prepareRun(deps, agent, o))
}

/** {@link runInProcess} with checked options. */
export async function runPrepared(deps: LibraryDeps, run: PreparedRun, watch: Watch = {}): Promise<RunResult> {
  const { store, runner } = deps
  const { agent, stream, options: o } = run
  let mine: string | undefined
  const cancelled = () => o.signal?.aborted === true || watch.cancelled?.() === true
  const stop = () => {
    if (mine !== undefined) void cancelOwn(store, stream, mine, 'aborted by its caller').catch(() => {})
  }
  const onRun = (runId: string) => {
    mine = runId
    watch.onRun?.(runId)
  }
  // What was stopped before there was a run to stop is stopped as soon as there is.
  const onBegun = () => {
    if (cancelled()) stop()
  }
  const drive: Drive = { bindings: o.bindings, onRun, onBegun, ...(watch.onDelta && { onDelta: watch.onDelta }) }
  const wantsMore = o.input !== undefined || o.inputFactory !== undefined
  o.signal?.addEventListener('abort', stop, { once: true })
  try {
    let checked: string | undefined
    for (;;) {
      const state = await store.load(stream)
      const status = threadStatus(state)
      if (o.signal?.aborted) throw aborted()
      if (run.previous && state.identity) {
        if (status === 'running') throw busy('A run is active on this thread.')
        checkHead(state, run.previous)
        checked = state.hash
        if (run.resume && status === 'waiting') {
          await answerWaits(deps.settle, state, run.resume)
          continue
        }
      }
      if (status === 'waiting' && !wantsMore && !run.previous && isAnyOverdue(state, store.clock.now())) {
        await expireThread(store, stream, { kind: 'library', id: '', source: 'deadline' })
        continue
      }
      const goesOn = status === 'running' || (status === 'resolved' && !wantsMore)
      if (goesOn && state.run?.agent.name !== agent.name) throw mismatch(state, agent)
      if (status === 'running') {
        const end = await takeOver(deps, state, agent, drive)
        if (!wantsMore) return await ended(deps, run, end)
      } else if (status === 'resolved' && !wantsMore) return await ended(deps, run, await runner.resume(stream, agent, drive))
      else if (status === 'waiting' && !wantsMore && !run.previous) return await standing(store, state)
      else if (state.requested.length > 0) throw busy('Runs are queued on this thread.')
      else {
        checkSuspension(state, agent, { abandon: o.abandon, answers: run.resume })
        return await fresh(deps, run, drive, cancelled, checked)
      }
    }
  } finally {
    o.signal?.removeEventListener('abort', stop)
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

type Drive = Pick<DriveOptions, 'bindings' | 'onDelta' | 'onRun' | 'onBegun'>

/** @param checked hash of the head at which the previous state was found to be that of the thread */
async function fresh(
  deps: LibraryDeps,
  run: PreparedRun,
  drive: Drive,
  cancelled: () => boolean,
  checked: string | undefined,
): Promise<RunResult> {
  const { store, runner } = deps
  const { options: o, agent, key, stream, previous } = run
  if (previous && !o.bindings?.stateStore && usesStore(previous).messages) throw storeMissing()
  const runId = store.ids.run()
  const options = {
    toolRecovery: o.toolRecovery ?? 'declared',
    toolErrors: o.toolErrors ?? 'throw',
    ...(o.usageLimits === undefined ? {} : { usageLimits: o.usageLimits }),
    ...(o.resumeUsage === true ? { resumeUsage: true } : {}),
    ...(o.abandon === true ? { abandon: true } : {}),
  } as const
  const wanted = { runId, agent: agent.name, input: await inputOf(o), options, commandId: null, answers: run.resume }
  if (o.signal?.aborted) throw aborted()
  const before = (proposal: Proposal) => {
    if (previous && proposal.state.identity && proposal.state.hash !== checked) checkHead(proposal.state, previous)
    return request(open(proposal, key, previous), wanted)
  }
  const after = (begun: Proposal) => (cancelled() ? cutAtOnce(begun) : begun)
  return ended(deps, run, await runner.start(stream, runId, agent, drive, before, after))
}

const inputOf = async (o: RunOptions): Promise<JsonValue | null> => o.input ?? (await o.inputFactory?.()) ?? null

async function ended({ store }: LibraryDeps, run: PreparedRun, end: AttemptEnd): Promise<RunResult> {
  if (end.is === 'not-taken' || end.is === 'superseded') throw busy('Another process drives this thread.')
  if (end.is === 'stopped') throw retryLater('closed', 'The log was closed while the run was going on; it will be recovered.')
  const result = await resultOf(store, await store.load(run.stream), end.end)
  if (run.resume && result.failure?.code === SURFACE_MISMATCH.code) throw surfaceMismatch(run)
  if (end.thrown === undefined) return result
  const about = { disposition: 'reject', cause: end.thrown, details: { run_id: result.runId, version: result.version } } as const
  if (result.failure?.code === 'capability_failed')
    throw new ThreadlogError('capability_failed', {
      ...about,
      message: result.failure.message,
      hint: 'The cause is the exception. What the hook came after is recorded; the run is recorded as failed.',
    })
  throw new ThreadlogError('tool_threw', {
    ...about,
    message: 'A tool threw an exception; its call is recorded as unknown and the run as failed.',
    hint: 'The cause is the exception. Pass `toolErrors: "return"` to let the model see that the call failed.',
  })
}

function surfaceMismatch({ resume, agent, options }: PreparedRun): ThreadlogError {
  const details = (resume && callerMismatch(resume, seenBy(options.bindings, agent))) ?? {}
  return definitionError(SURFACE_MISMATCH.code, SURFACE_MISMATCH.message, { details: details as Record<string, string> })
}

/** A thread that still waits: the suspension as it stands, without a new run. */
async function standing(store: ThreadStore, state: ThreadState): Promise<RunResult> {
  const end = state.run && state.runs.get(state.run.runId)
  if (!end) throw busy('The thread is suspended.')
  return resultOf(store, state, end)
}
