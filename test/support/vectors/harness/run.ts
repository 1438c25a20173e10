import { deepEqual, equal, ok } from 'node:assert/strict'
import { isThreadlogError } from '../../../../src/base/index.ts'
import type { DeferredToolResume } from '../../../../src/harness/index.ts'
import { openThreadlog, type RunOptions, type RunResult, type RunStream, type Threadlog } from '../../../../src/index.ts'
import { type Cast, castOf } from './agent.ts'
import { historyForm, stateForm, tokens } from './normalise.ts'
import { type Any, errorForm, resumeForm, resumeOf, stateJson, wantedError } from './values.ts'

// Kinds that run an agent, through the public API, each on a log of its own.

const FRESH = 'thread_00000000000000000000000000000001'

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

interface Stage {
  v: Any
  cast: Cast
  threads: Threadlog
  options: RunOptions
}

async function onStage(v: Any, work: (stage: Stage) => Promise<void>): Promise<void> {
  const cast = castOf(v)
  const threads = await openThreadlog({ log: v.log ?? 'memory', application: v.id, agents: [cast.agent] })
  try {
    await work({ v, cast, threads, options: optionsOf(v, cast) })
  } finally {
    await threads.close()
  }
}

function optionsOf(v: Any, cast: Cast): RunOptions {
  const limits = v.usage_limits ?? {}
  return {
    ...(v.previous_state ? { previousState: v.previous_state } : {}),
    ...(v.input === null || v.input === undefined ? {} : { input: v.input }),
    ...(v.input_and_factory ? { inputFactory: () => 'made' } : {}),
    ...(v.tool_recovery ? { toolRecovery: v.tool_recovery } : {}),
    ...(v.deferred_resume ? { deferredResume: resumeOf(v.deferred_resume) as DeferredToolResume } : {}),
    ...(v.resume_usage ? { resumeUsage: true } : {}),
    ...(v.usage_limits
      ? {
          usageLimits: {
            ...('tool_calls_limit' in limits ? { toolCalls: limits.tool_calls_limit } : {}),
            ...('request_limit' in limits ? { requests: limits.request_limit } : {}),
            ...('input_tokens_limit' in limits ? { inputTokens: limits.input_tokens_limit } : {}),
            ...('output_tokens_limit' in limits ? { outputTokens: limits.output_tokens_limit } : {}),
            ...('total_tokens_limit' in limits ? { totalTokens: limits.total_tokens_limit } : {}),
          },
        }
      : {}),
    bindings: {
      ...(cast.policy ? { policy: cast.policy } : {}),
      ...(v.agent?.deferred_tools_supported === false ? { deferredToolsSupported: false } : {}),
    },
  }
}

/** Compares an error with the recorded one; foreign exceptions of the original are exceptions without a kind here. */
function sameError(error: unknown, wanted: Any): void {
  ok(error !== undefined, `expected ${wanted.type} ${wanted.code}`)
  const form = errorForm(error)
  const like = wantedError(wanted)
  deepEqual(Object.fromEntries(Object.keys(like).map((key) => [key, form[key]])), like)
}

const run = (v: Any) =>
  onStage(v, async ({ cast, threads, options }) => {
    const { expect: want } = v
    let stream: RunStream
    try {
      stream = threads.stream(cast.agent, options)
    } catch (error) {
      if (want.error?.phase !== 'construct') throw error
      return sameError(error, want.error)
    }
    equal(want.error?.phase === 'construct', false, 'expected an error at construction')
    let error: unknown
    try {
      await stream.enter()
      if (v.cancel === 'before-start') stream.cancel()
      if (v.cancel === 'when-started') void cast.hanging.then(() => stream.cancel())
      for await (const _ of stream.events());
    } catch (caught) {
      error = caught
    }
    const result = stream.delivered
    await stream.close()
    if (want.error) sameError(error, want.error)
    else if (error !== undefined) throw error
    else compareResult(want, result as RunResult)
    await compareTraces(v, cast, stream)
  })

function compareResult(want: Any, result: RunResult): void {
  const { code, details, retryHint: retry_hint } = result.failure ?? {}
  const failure = result.failure && { code, details: namelessDetails(details), retry_hint }
  equal(result.status, want.status)
  deepEqual(
    {
      status: result.status,
      suspend_reason: result.suspendReason,
      output: result.output,
      failure,
      deferred: result.deferred && tokens(JSON.parse(JSON.stringify(result.deferred))),
      new_messages: result.newMessages().length,
    },
    {
      status: want.status,
      suspend_reason: want.suspend_reason,
      output: want.output,
      failure: want.failure,
      deferred: want.deferred,
      new_messages: want.new_messages,
    },
  )
}

const namelessDetails = (details: Any): Any =>
  details && 'exception_type' in details ? { ...details, exception_type: '<exception-type>' } : details

const sorted = (list: Any[]): Any[] => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

async function compareTraces(v: Any, cast: Cast, stream: RunStream): Promise<void> {
  const { expect: want } = v
  if (want.executed) deepEqual(sorted(cast.executed), sorted(want.executed))
  if (want.policy_evaluated) deepEqual([...cast.policyEvaluated].sort(), want.policy_evaluated)
  if ('model_calls' in want) equal(cast.model.requests.length, want.model_calls)
  if ('pending_deferred_input' in want)
    deepEqual(resumeForm((await stream.pendingDeferredInput()) ?? undefined), want.pending_deferred_input)
  let exported: Any
  try {
    exported = stateJson(await stream.exportState())
  } catch (error) {
    if (!want.export_error) throw error
    return sameError(error, want.export_error)
  }
  equal(want.export_error ?? undefined, undefined)
  if (want.history) deepEqual(historyForm(exported.message_history), want.history)
  if (want.state) deepEqual(stateForm(exported, v.previous_state ? undefined : FRESH), want.state)
}

/** A state as an export is compared. */
async function exportForm(v: Any, stream: RunStream): Promise<Any> {
  try {
    const state = stateJson(await stream.exportState())
    return {
      history: historyForm(state.message_history),
      namespaces: Object.keys(stateForm(state).agent_context_state.entries),
      thread_kept: v.previous_state ? state.thread_id === v.previous_state.thread_id : true,
    }
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    const { ours: _, ...form } = errorForm(error)
    return { error: { ...form, phase: 'export' } }
  }
}

const exportKind = (v: Any) =>
  onStage(v, async ({ cast, threads, options }) => {
    const { expect: want } = v
    const stream = threads.stream(cast.agent, options)
    const got: Any = {}
    const pending = async () => resumeForm((await stream.pendingDeferredInput()) ?? undefined)
    if (v.export_at === 'before-entry') got.export = await exportForm(v, stream)
    else await stream.enter()
    if (v.export_at === 'after-entry') got.export = await exportForm(v, stream)
    if (v.export_at === 'in-tool' || v.export_at === 'in-model') {
      void cast.hanging.then(async () => {
        await wait(30)
        got.pending_deferred_input = await pending()
        got.export = await exportForm(v, stream)
        stream.cancel()
      })
      for await (const _ of stream.events());
      got.status = stream.delivered?.status
    }
    if (v.export_at === 'after-close') for await (const _ of stream.events());
    if (v.export_at === 'after-consumer-error')
      try {
        for await (const _ of stream.events()) throw new Error('the consumer')
      } catch {
        // It throws after the first event.
      }
    await stream.close()
    if (v.export_at === 'after-close' || v.export_at === 'after-consumer-error') got.export = await exportForm(v, stream)
    got.export_after_close = await exportForm(v, stream)
    got.pending_deferred_input_after_close = await pending()
    got.result = stream.delivered !== null
    got.outcome = stream.outcome !== null
    got.model_calls = cast.model.requests.length
    if (stream.delivered?.state)
      got.equals_result_state = (await stream.exportState()).toText() === stream.delivered.state.toText()
    deepEqual(Object.fromEntries(Object.keys(want).map((key) => [key, got[key] ?? null])), want)
  })

const streamKind = (v: Any) =>
  onStage(v, async ({ cast, threads, options }) => {
    const stream = threads.stream(cast.agent, options)
    const seen: Any[] = []
    let iterator: AsyncIterator<Any> | undefined
    const next = async () => {
      if (iterator === undefined) throw new Error('nothing iterates')
      const { done, value }: IteratorResult<Any> = await iterator.next()
      if (!done) seen.push(value)
      return done ? undefined : value
    }
    const told = (event: Any) => ({ event: event.event ?? event.type, sequence: event.sequence })
    const ops: Record<string, () => unknown> = {
      enter: async () => void (await stream.enter()),
      exit: () => stream.close(),
      iterate: () => {
        iterator = stream.events()
      },
      next: async () => told(await next()),
      'two-next': async () => {
        const both = await Promise.allSettled([next(), next()])
        return both.map((one) => (one.status === 'rejected' ? { error: codeOf(one.reason) } : told(one.value)))
      },
      drain: async () => {
        while (await next());
        const gapless = seen.every(({ sequence }, i) => sequence === i)
        const results = seen.filter(({ type }) => type === 'result').length
        return { gapless, last: seen.at(-1).type, results }
      },
      cancel: () => stream.cancel(),
      steer: () => stream.steer('more'),
      result: () => stream.delivered?.status ?? null,
      outcome: () => stream.outcome?.status ?? null,
      'model-calls': () => cast.model.requests.length,
    }
    for (const [i, op] of v.ops.entries()) {
      let got: unknown
      try {
        got = await ops[op]?.()
        if (got === undefined) got = 'ok'
      } catch (error) {
        got = { error: codeOf(error) }
      }
      deepEqual(got, v.expect[i], `${i}: ${op}`)
    }
  })

const codeOf = (error: unknown): Any => {
  const { type, code } = errorForm(error)
  return { type, code }
}

export const runs: Readonly<Record<string, (v: Any) => Promise<void>>> = { run, export: exportKind, stream: streamKind }
