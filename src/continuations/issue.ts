import type { z } from 'zod'

/** Where a value does not fit and what would. Names fields of the contract only, never text of the value. */
export interface Misfit {
  readonly path: string
  readonly expected: string
}

/** The first issue of a refused value. */
export function misfitOf(error: z.ZodError, root = '$'): Misfit {
  const issue = error.issues[0]
  if (!issue) return { path: root, expected: 'another value' }
  const path = issue.path.reduce<string>(
    (text, step) => text + (typeof step === 'number' ? `[${step}]` : `.${String(step)}`),
    root,
  )
  return { path, expected: expectedBy(issue) }
}

function expectedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return 'no other fields'
    case 'invalid_type':
      return issue.message.startsWith('Invalid input') ? `${issue.expected}` : issue.message
    case 'too_small':
      return `at least ${issue.minimum} ${unitOf(issue.origin)}`
    case 'too_big':
      return `at most ${issue.maximum} ${unitOf(issue.origin)}`
    default:
      return issue.message
  }
}

const unitOf = (origin: string): string => (origin === 'string' ? 'characters' : origin === 'array' ? 'items' : '')
