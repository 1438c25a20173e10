import { isThreadlogError } from '../../../../src/base/index.ts'
import { DeferredToolResults, DeferredToolResume } from '../../../../src/harness/index.ts'
import type { HarnessState } from '../../../../src/messages/index.ts'

// Forms of the recorded harness vectors (test/vectors/harness/README.md).

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
export type Any = any

/** An input value: what JSON cannot hold is made real. */
export function live(value: Any): Any {
  if (Array.isArray(value)) return value.map(live)
  if (typeof value !== 'object' || value === null) return value
  if ('$repeat' in value) return value.$repeat.text.repeat(value.$repeat.times)
  if ('$live-handle' in value) return () => {}
  if ('$special' in value) return special(value.$special)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, live(item)]))
}

function special(name: string): unknown {
  const list: unknown[] = []
  list.push(list)
  const object: Record<string, unknown> = {}
  object['self'] = object
  switch (name) {
    case 'NaN':
      return Number.NaN
    case 'Infinity':
      return Number.POSITIVE_INFINITY
    case '-Infinity':
      return Number.NEGATIVE_INFINITY
    case 'cycle':
      return list
    case 'object-cycle':
      return object
    default:
      throw new Error(`no form for ${name}`)
  }
}

const isRaw = (decision: Any): boolean => typeof decision === 'object' && decision !== null && 'raw' in decision

/** The resume value of a vector, or what stands in its place. `{raw: x}` is an illegal decision and is passed as it is. */
export function resumeOf(value: Any): unknown {
  if (value === null || value === undefined) return undefined
  if ('$raw' in value) return live(value.$raw)
  const { results = {}, ...rest } = live(value)
  const decisions = Object.entries<Any>(results.approvals ?? {})
  const wire = Object.fromEntries(decisions.map(([id, decision]) => [id, isRaw(decision) ? null : decision]))
  const resume = DeferredToolResume.parse({ ...rest, results: { ...results, approvals: wire } })
  if (!decisions.some(([, decision]) => isRaw(decision))) return resume
  const given = decisions.map(([id, decision]) => [id, isRaw(decision) ? decision.raw : resume.results.approvals[id]])
  return new DeferredToolResume({
    ...resume,
    results: new DeferredToolResults({ ...resume.results, approvals: Object.fromEntries(given) }),
  })
}

/** A resume value in wire form. */
export const resumeForm = (resume: DeferredToolResume | undefined): Any =>
  resume === undefined ? null : JSON.parse(JSON.stringify(resume))

/** The vectors' name of an error: class, code, details and hint of refusals that have a class; of other refusals that they are ours. */
export function errorForm(error: unknown): Any {
  if (!isThreadlogError(error)) return { code: null, ours: false }
  if (error.kind === undefined) return { code: null, ours: true }
  return { type: error.kind, code: error.code, details: error.details, retry_hint: error.retryHint, ours: true }
}

/** Refusals of values over there: here refusals without a class, never an exception of the language. */
const REFUSALS = ['TypeError', 'ValueError', 'ValidationError']

/** `expect.error` as far as it is part of the contract. */
export function wantedError(error: Any): Any {
  if (error.code === null) return { code: null, ...(REFUSALS.includes(error.type) ? { ours: true } : {}) }
  const { type, code, details, retry_hint } = error
  return { type, code, ...(details ? { details } : {}), ...(retry_hint ? { retry_hint } : {}) }
}

/** What `work` throws, in the form of the vectors; compared by the fields that `like` has. */
export function caught(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return undefined
}

export const stateJson = (state: HarnessState): Any => JSON.parse(state.toText())
