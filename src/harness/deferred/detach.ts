import { reject } from '../../base/index.ts'
import { type Outcome, outcomeOf, toolApproved, toolDenied, toolFailed, toolReturn } from './outcomes.ts'

export const wrongType = (path: string, expected: string) =>
  reject('argument_type_invalid', `The argument ${path} is not usable.`, { path, expected })

/**
 * A deep, frozen copy. NaN, infinities and cycles are copied as they are: whether they can be meant is for preflight to say.
 * @throws ThreadlogError `argument_type_invalid` for functions, handles, and whatever else cannot be copied
 */
export function detached<T>(value: T, path: string): T {
  let copy: T
  try {
    copy = structuredClone(value)
  } catch {
    throw wrongType(path, 'values that can be copied')
  }
  freeze(copy)
  return copy
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const item of Object.values(value)) freeze(item)
}

/** A list, detached. */
export function detachedList<T>(values: readonly T[], path: string): readonly T[] {
  if (!Array.isArray(values)) throw wrongType(path, 'a list')
  return detached(values, path)
}

/** Values by id, detached; outcomes are kept apart from data. */
export function detachedMap(values: Readonly<Record<string, unknown>>, path: string): Readonly<Record<string, unknown>> {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) throw wrongType(path, 'an object')
  return Object.freeze(Object.fromEntries(Object.entries(values).map(([key, value]) => [key, detachedValue(value, path)])))
}

function detachedValue(value: unknown, path: string): unknown {
  const outcome = outcomeOf(value)
  if (!outcome) return detached(value, path)
  const { is: _, ...fields } = outcome
  return rebuilt(outcome, detached(fields, path) as never)
}

function rebuilt(outcome: Outcome, fields: never): unknown {
  switch (outcome.is) {
    case 'tool-return':
      return toolReturn(fields)
    case 'tool-failed':
      return toolFailed(outcome.message)
    case 'approved':
      return toolApproved(fields)
    case 'denied':
      return toolDenied(fields)
    default:
      throw wrongType('results', 'a value, toolReturn or toolFailed; a boolean, toolApproved or toolDenied')
  }
}
