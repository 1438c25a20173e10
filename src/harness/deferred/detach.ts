import { frozenCopy, reject } from '../../base/index.ts'
import { type Outcome, outcomeOf, toolApproved, toolDenied, toolFailed, toolReturn } from './outcomes.ts'

export const wrongType = (path: string, expected: string) =>
  reject('argument_type_invalid', `The argument ${path} is not usable.`, { path, expected })

/** @throws ThreadlogError `argument_type_invalid` for functions, handles, and whatever else cannot be copied */
export function detached<T>(value: T, path: string): T {
  try {
    return frozenCopy(value)
  } catch {
    throw wrongType(path, 'values that can be copied')
  }
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
