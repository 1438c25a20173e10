import { type ErrorKind, type RetryHint, reject, type ThreadlogError } from '../base/index.ts'

interface About {
  path?: string
  expected?: string
  hint?: string
  retryHint?: RetryHint
  details?: ThreadlogError['details']
  cause?: unknown
}

const ofKind =
  (kind: ErrorKind) =>
  (code: string, message: string, about: About = {}): ThreadlogError =>
    reject(code, message, { ...about, kind })

/** A run was asked for, or is used, in a way that cannot be meant (state spec §2.5). */
export const runError = ofKind('RunError')
/** A state, or what a run keeps of one, is missing or not as needed. */
export const stateError = ofKind('StateError')
/** The agent no longer offers what the run needs. */
export const definitionError = ofKind('DefinitionError')

export const usageMissing = (): ThreadlogError =>
  stateError('usage_state_missing', 'There is no usage to go on from.', {
    path: 'resumeUsage',
    expected: 'a thread that has had a run, or a state exported by one',
  })
