/** What the caller should do: try again, change the request, or look at the log before anything else. */
export type Disposition = 'retry' | 'reject' | 'fatal'

/** What an error is about, where the state format's library has a class for it: a run, a state, the definition of an agent, cleaning up. */
export type ErrorKind = 'RunError' | 'StateError' | 'DefinitionError' | 'RunCleanupError'

/** What may help: nothing, a new run, or a change of what the run depends on. */
export type RetryHint = 'none' | 'new_run' | 'dependency_change'

/** Everything a {@link ThreadlogError} carries beside its code. No field may hold payload text (design §10). */
export interface ErrorInfo {
  disposition: Disposition
  /** What went wrong, in one sentence, without payload. */
  message: string
  /** Where: a JSON path (`$.result.items[3]`), a parameter name, a file. */
  path?: string
  /** What would have been accepted. */
  expected?: string
  /** What to do about it. */
  hint?: string
  kind?: ErrorKind
  /** Of an error with a `kind`; default `none`. */
  retryHint?: RetryHint
  /** Structured facts: ids, counts, limits, positions. */
  details?: Record<string, string | number | boolean | null | readonly string[]>
  cause?: unknown
}

const MARK = Symbol.for('threadlog.error')

/** The one error class. `code` is stable and literal; tell kinds apart by it, never by `instanceof` or message text. */
export class ThreadlogError extends Error {
  override readonly name = 'ThreadlogError'
  readonly code: string
  readonly disposition: Disposition
  readonly path?: string
  readonly expected?: string
  readonly hint?: string
  readonly kind?: ErrorKind
  readonly retryHint?: RetryHint
  readonly details: Readonly<NonNullable<ErrorInfo['details']>>

  constructor(code: string, info: ErrorInfo) {
    super(info.message, info.cause === undefined ? undefined : { cause: info.cause })
    this.code = code
    this.disposition = info.disposition
    this.path = info.path
    this.expected = info.expected
    this.hint = info.hint
    if (info.kind !== undefined) {
      this.kind = info.kind
      this.retryHint = info.retryHint ?? 'none'
    }
    this.details = info.details ?? {}
    Object.defineProperty(this, MARK, { value: true, enumerable: false })
  }

  /** The form shown to machines (`threadlog … -o json`, HTTP). */
  toJSON(): Record<string, unknown> {
    const { code, disposition, message, path, expected, hint, details } = this
    return { code, disposition, message, path, expected, hint, details }
  }
}

/** True for errors of any loaded copy of this package; optionally only those with one of `codes`. */
export function isThreadlogError(error: unknown, ...codes: string[]): error is ThreadlogError {
  if (typeof error !== 'object' || error === null || !isMarked(error)) return false
  return codes.length === 0 || codes.includes((error as ThreadlogError).code)
}

/** What others throw may be a value whose every property throws. */
function isMarked(error: object): boolean {
  try {
    return (error as Record<symbol, unknown>)[MARK] === true
  } catch {
    return false
  }
}

/** `error instanceof type`, false also for a value that throws when it is looked at: what others throw may be anything. */
export function isA<T>(error: unknown, type: new (...args: never[]) => T): error is T {
  try {
    return error instanceof type
  } catch {
    return false
  }
}

/** Name of the class of an error; undefined for what is none, or has none that is text. */
export function errorClass(error: unknown): string | undefined {
  try {
    return error instanceof Error && typeof error.name === 'string' ? error.name : undefined
  } catch {
    return undefined
  }
}

/** Shorthand for a refusal: the request is wrong and will stay wrong. */
export const reject = (code: string, message: string, info: Omit<ErrorInfo, 'disposition' | 'message'> = {}): ThreadlogError =>
  new ThreadlogError(code, { ...info, message, disposition: 'reject' })

/** Shorthand for a passing condition: the same request may succeed later. */
export const retryLater = (
  code: string,
  message: string,
  info: Omit<ErrorInfo, 'disposition' | 'message'> = {},
): ThreadlogError => new ThreadlogError(code, { ...info, message, disposition: 'retry' })

/** Shorthand for a stop: somebody has to look at the log. */
export const fatal = (code: string, message: string, info: Omit<ErrorInfo, 'disposition' | 'message'> = {}): ThreadlogError =>
  new ThreadlogError(code, { ...info, message, disposition: 'fatal' })

/** @throws ThreadlogError `option_invalid` for what is no object of options; what is left out was made one before */
export function checkOptions(given: unknown): void {
  if (typeof given !== 'object' || given === null)
    throw reject('option_invalid', 'The options are no object.', { path: 'options', expected: 'an object with named options' })
}
