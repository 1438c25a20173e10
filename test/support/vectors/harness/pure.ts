import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { z } from 'zod'
import { countingIds, isThreadlogError, sha256Hex, systemIds } from '../../../../src/base/index.ts'
import {
  CapabilityStates,
  DeferredRequests,
  DeferredToolResults,
  DeferredToolResume,
  loadContent,
  preflight,
  RunResult,
  remaining,
  type StateStore,
  storeContent,
} from '../../../../src/harness/index.ts'
import { HarnessState, isThreadId, openCalls, type StoredRef } from '../../../../src/messages/index.ts'
import { type Any, caught, errorForm, live, resumeForm, resumeOf, stateJson, wantedError } from './values.ts'

// Kinds that need no run: each throws an AssertionError when the library differs from what was recorded.

type Kind = (v: Any) => void | Promise<void>

/** Fails unless `error` is the one recorded. */
export function sameError(error: unknown, wanted: Any): void {
  ok(error !== undefined, `expected ${wanted.type} ${wanted.code}`)
  const form = errorForm(error)
  const like = wantedError(wanted)
  deepEqual(Object.fromEntries(Object.keys(like).map((key) => [key, form[key]])), like)
}

/** Runs `work`; compares what it throws with `expect.error`, or what it gives with `check`. */
async function outcome(v: Any, work: () => unknown, check: (value: Any) => unknown): Promise<void> {
  let value: unknown
  try {
    value = await work()
  } catch (error) {
    if (v.expect.ok !== false && !v.expect.error) throw error
    return sameError(error, v.expect.error)
  }
  ok(v.expect.ok !== false, `expected ${v.expect.error?.code ?? 'a refusal'}`)
  await check(value)
}

const pathOf = (loc: string[]): string =>
  loc.reduce((path, key) => (/^\d+$/.test(key) ? `${path}[${key}]` : `${path}.${key}`), '$')

function stateParse(v: Any): void {
  const parse = () => HarnessState.parse(v.input_text ?? live(v.input))
  if (!v.expect.ok) {
    const error = caught(parse)
    ok(isThreadlogError(error, 'state_invalid'))
    const [first] = v.expect.rules
    if (first.loc[0] === 'message_history') match(error.path ?? '', /^\$\.message_history/)
    else equal(error.path, pathOf(first.loc))
    return
  }
  const { thread_id, messages, open_calls, namespaces, canonical, canonical_text } = v.expect
  const state = parse()
  equal(state.threadId, thread_id)
  equal(state.messageHistory.length, messages)
  deepEqual(
    openCalls(state.messageHistory).map((call) => call.tool_call_id),
    open_calls,
  )
  deepEqual(Object.keys(state.entries).sort(), [...namespaces].sort())
  deepEqual(state.toJSON(), canonical)
  equal(state.toText(), canonical_text)
  equal(HarnessState.parse(canonical_text).toText(), canonical_text)
}

function threadIds(v: Any): void {
  for (const { thread_id, ok: good } of v.expect) {
    equal(isThreadId(thread_id), good, JSON.stringify(thread_id))
    equal(caught(() => HarnessState.new({ threadId: thread_id, ids: systemIds })) === undefined, good)
  }
}

function generatedThreadId(v: Any): void {
  const [a, b] = [HarnessState.new({ ids: systemIds }), HarnessState.new({ ids: systemIds })]
  match(a.threadId, new RegExp(v.expect.pattern))
  notEqual(a.threadId, b.threadId)
  deepEqual(HarnessState.new({ ids: countingIds() }).toJSON(), v.expect.initial_state)
}

const fork: Kind = (v) => {
  const made: string[] = []
  const ids = { thread: () => made[made.push(systemIds.thread()) - 1] as string }
  const source = HarnessState.parse(v.input)
  return outcome(
    v,
    () => source.fork({ ...(v.thread_id === null ? {} : { threadId: v.thread_id }), ids }),
    (state: HarnessState) => {
      const own = v.thread_id === null ? made.shift() : undefined
      let text = state.toText()
      if (own) text = text.replaceAll(own, '<generated-thread>')
      for (const [i, id] of made.entries()) text = text.replaceAll(id, `<generated-child-thread-${i + 1}>`)
      deepEqual(JSON.parse(text), v.expect.state)
      deepEqual(source.toJSON(), HarnessState.parse(v.input).toJSON())
    },
  )
}

function capabilityState(v: Any): void {
  const schema = z.fromJSONSchema(v.schema)
  const states = new CapabilityStates(v.entries)
  const snapshots: Any[] = []
  const run = (op: Any): unknown => {
    switch (op.op) {
      case 'read':
        return { value: states.read({ id: op.id, version: op.version, schema }) }
      case 'write':
        states.write({ id: op.id, version: op.version, value: live(op.value), ...(op.loose ? {} : { schema }) })
        return { ok: true }
      case 'snapshot':
        return { entries: snapshots[snapshots.push(states.snapshot()) - 1] }
      case 'recheck':
        return { entries: snapshots[op.snapshot] }
      default:
        return { entry: new CapabilityStates(v.entries).get(op.id) }
    }
  }
  for (const [i, op] of v.ops.entries()) {
    const want = v.expect[i]
    if (want.error)
      sameError(
        caught(() => run(op)),
        want.error,
      )
    else deepEqual(run(op), want)
  }
}

const previous = (v: Any): HarnessState | undefined => (v.previous_state ? HarnessState.parse(v.previous_state) : undefined)

const preflightKind: Kind = (v) => {
  let given: unknown
  return outcome(
    v,
    () => {
      given = resumeOf(v.deferred_resume)
      return preflight(previous(v), given)
    },
    (input: DeferredToolResume | undefined) => {
      const want = v.expect.deferred_input === '<as-given>' ? resumeForm(given as DeferredToolResume) : v.expect.deferred_input
      deepEqual(resumeForm(input), want)
    },
  )
}

const remainingKind: Kind = (v) =>
  outcome(
    v,
    () => remaining(resumeOf(v.deferred_resume) as DeferredToolResume, HarnessState.parse(v.state).messageHistory),
    (rest: DeferredToolResume | undefined) => deepEqual(resumeForm(rest), v.expect.remaining),
  )

const deferredValue: Kind = (v) =>
  outcome(
    v,
    () => {
      const requests = '$raw' in v.requests ? v.requests.$raw : DeferredRequests.parse(live(v.requests))
      const results = '$raw' in v.results ? v.results.$raw : resultsOf(v.results)
      return new DeferredToolResume({ requests, results })
    },
    (resume: DeferredToolResume) => deepEqual(resumeForm(resume), v.expect.value),
  )

/** Results whose values are given as they are where they are no wire form. */
function resultsOf(results: Any): DeferredToolResults {
  const calls = Object.fromEntries(
    Object.entries(results.calls ?? {}).map(([id, item]: [string, Any]) => [
      id,
      '$live-handle' in item ? { value: live(item) } : live(item),
    ]),
  )
  return DeferredToolResults.parse({ ...live({ ...results, calls: {} }), calls })
}

const buildResults: Kind = (v) =>
  outcome(
    v,
    () => {
      const { approve_all: approveAll, calls, approvals, metadata } = v.arguments
      const wire = DeferredToolResults.parse({ calls: calls ?? {}, approvals: approvals ?? {}, metadata: metadata ?? {} })
      return DeferredRequests.parse(v.requests).buildResults({ ...wire, ...(approveAll === undefined ? {} : { approveAll }) })
    },
    (results: DeferredToolResults) => deepEqual(JSON.parse(JSON.stringify(results)), v.expect.results),
  )

const RUN_ID = 'run-00000000000000000000000000000001'

const result: Kind = (v) => {
  const f = v.fields
  const thread = f.thread_id ?? f.state ?? 'thread_00000000000000000000000000000001'
  const state = f.state && HarnessState.parse({ schema_version: '1', thread_id: f.state })
  return outcome(
    v,
    () =>
      new RunResult({
        status: f.status,
        thread: { application: 'a', user: 'u', thread },
        ...{ runId: f.run_id ?? RUN_ID, invocationId: RUN_ID, version: 1 },
        ...{ output: f.output, state, suspendReason: f.suspend_reason },
        failure: f.failure && { ...f.failure, retryHint: f.failure.retry_hint },
        deferred: f.deferred && DeferredRequests.parse(f.deferred),
      }),
    (made: RunResult) => {
      const { code, details, retryHint: retry_hint } = made.failure ?? {}
      deepEqual(
        {
          ok: true,
          status: made.status,
          suspend_reason: made.suspendReason,
          output: made.output,
          failure: made.failure && { code, details, retry_hint },
          deferred: made.deferred && JSON.parse(JSON.stringify(made.deferred)),
          failure_message: made.failure?.message ?? null,
        },
        Object.fromEntries(Object.entries(v.expect).filter(([key]) => key !== 'output_or_raise')),
      )
      const { error, value } = v.expect.output_or_raise
      if (error)
        sameError(
          caught(() => made.outputOrRaise()),
          error,
        )
      else deepEqual(made.outputOrRaise(), value)
    },
  )
}

/** A store of a host, with keys `<kind>-<n>`; `content-9` holds what the vectors refer to. */
function hostStore(v: Any, threshold: number): StateStore & { saved: Record<string, Any> } {
  const saved: Record<string, Any> = {}
  const kept = new Map<string, Uint8Array>()
  for (const [key, { base64, kind }] of Object.entries<Any>(v.expect.saved))
    if (kind === null) {
      kept.set(key, Buffer.from(base64, 'base64url'))
      saved[key] = { base64, kind }
    }
  let count = 0
  return {
    saved,
    contentThreshold: threshold,
    async save(bytes, kind): Promise<StoredRef> {
      const key = `${kind}-${++count}`
      kept.set(key, bytes)
      saved[key] = { base64: Buffer.from(bytes).toString('base64').replaceAll('+', '-').replaceAll('/', '_'), kind }
      return { key, digest: sha256Hex(bytes), size: bytes.byteLength }
    },
    async load(ref) {
      return kept.get(ref.key) as Uint8Array
    },
  }
}

async function store(v: Any): Promise<void> {
  const host = v.content_threshold === null ? undefined : hostStore(v, v.content_threshold)
  const state = HarnessState.parse(v.state)
  const exported = await storeContent(state, host)
  deepEqual(stateJson(exported), v.expect.exported)
  deepEqual(host?.saved ?? {}, v.expect.saved)
  deepEqual(stateJson(await storeContent(exported, host)), stateJson(exported))
  let loaded: HarnessState
  try {
    loaded = await loadContent(exported, host)
  } catch (error) {
    if (!v.expect.load_error) throw error
    return sameError(error, v.expect.load_error)
  }
  ok(!v.expect.load_error)
  deepEqual(stateJson(loaded).message_history, v.expect.loaded_messages)
  deepEqual(loaded.entries, v.expect.loaded_entries)
}

export const pure: Readonly<Record<string, Kind>> = {
  'state.parse': stateParse,
  'thread-id': threadIds,
  'thread-id.generated': generatedThreadId,
  'state.fork': fork,
  'capability-state': capabilityState,
  preflight: preflightKind,
  remaining: remainingKind,
  'deferred-value': deferredValue,
  'deferred-value.build-results': buildResults,
  result,
  store,
}
