import { isThreadlogError } from '../../../../src/base/index.ts'
import { DeferredToolResume } from '../../../../src/harness/index.ts'
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

/** `{raw: x}` stands for an illegal decision, passed as it is; everything else is the wire form. */
function decisions(value: Any): Any {
  return Object.fromEntries(
    Object.entries(value ?? {}).map(([id, item]: [string, Any]) => [
      id,
      item && typeof item === 'object' && 'raw' in item ? item.raw : item,
    ]),
  )
}

/** The resume value of a vector, or what stands in its place. */
export function resumeOf(value: Any): unknown {
  if (value === null || value === undefined) return undefined
  if ('$raw' in value) return live(value.$raw)
  const { results, ...rest } = live(value)
  return DeferredToolResume.parse({ ...rest, results: { ...results, approvals: decisions(results?.approvals) } })
}

/** A resume value in wire form. */
export const resumeForm = (resume: DeferredToolResume | undefined): Any =>
  resume === undefined ? null : JSON.parse(JSON.stringify(resume))

/** The vectors' name of an error: class, code, details and hint of errors of ours; only that there is one for all others. */
export function errorForm(error: unknown): Any {
  if (!isThreadlogError(error)) return { code: null }
  if (error.kind === undefined) return { code: null }
  return { type: error.kind, code: error.code, details: error.details, retry_hint: error.retryHint }
}

/** `expect.error` as far as it is part of the contract. */
export function wantedError(error: Any): Any {
  if (error.code === null) return { code: null }
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
