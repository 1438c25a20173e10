import { reject } from '../../base/index.ts'

// What can stand in place of a plain value where a call is answered: by a tool's body, or from outside. Told apart by a brand, so that values
// of another copy of this package are understood, and data is never taken for one.

const BRAND = Symbol.for('threadlog.call-outcome')

export interface ToolReturn {
  readonly is: 'tool-return'
  readonly returnValue: unknown
  /** More for the model to read: text, or content items; it stands behind the value. */
  readonly content?: unknown
  /** Kept with the answer, not shown to the model. */
  readonly metadata?: unknown
}
export interface ToolFailed {
  readonly is: 'tool-failed'
  readonly message: string
}
export interface ModelRetry {
  readonly is: 'model-retry'
  readonly message: string
}
export interface CallDeferred {
  readonly is: 'call-deferred'
  readonly metadata: Readonly<Record<string, unknown>>
}
export interface ApprovalRequired {
  readonly is: 'approval-required'
  readonly metadata: Readonly<Record<string, unknown>>
}
export interface ToolApproved {
  readonly is: 'approved'
  /** In place of the proposed arguments; checked again by the tool's schema. */
  readonly overrideArgs?: unknown
}
export interface ToolDenied {
  readonly is: 'denied'
  /** What the model reads; default a sentence of ours. */
  readonly message?: string
}
export type Outcome = ToolReturn | ToolFailed | ModelRetry | CallDeferred | ApprovalRequired | ToolApproved | ToolDenied

const branded = <T extends Outcome>(outcome: T): T => Object.freeze(Object.defineProperty(outcome, BRAND, { value: true }))

/** A value with extra content for the model and metadata for the host. */
export const toolReturn = (o: { returnValue: unknown; content?: unknown; metadata?: unknown }): ToolReturn =>
  branded({ is: 'tool-return', ...o })
/** The call failed, and the model is told so. Return or throw it. */
export const toolFailed = (message: string): ToolFailed => branded({ is: 'tool-failed', message: checked(message) })
/** The model should call again with better arguments. Return or throw it. */
export const modelRetry = (message: string): ModelRetry => branded({ is: 'model-retry', message: checked(message) })
/** The result comes from outside: the run suspends. Return or throw it. */
export const callDeferred = (metadata: Record<string, unknown> = {}): CallDeferred => branded({ is: 'call-deferred', metadata })
/** A person must approve this very call first: the run suspends, and the body is entered again with `approved`. Return or throw it. */
export const approvalRequired = (metadata: Record<string, unknown> = {}): ApprovalRequired =>
  branded({ is: 'approval-required', metadata })
/** Lets a proposed call run. */
export const toolApproved = (o: { overrideArgs?: unknown } = {}): ToolApproved => branded({ is: 'approved', ...o })
/** Refuses a proposed call. */
export const toolDenied = (o: { message?: string } = {}): ToolDenied => branded({ is: 'denied', ...o })

function checked(message: unknown): string {
  if (typeof message === 'string') return message
  throw reject('argument_type_invalid', 'The message is no text.', { path: 'message', expected: 'a string' })
}

/** The outcome a value is, if it is one. */
export function outcomeOf(value: unknown): Outcome | undefined {
  try {
    return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[BRAND] === true
      ? (value as Outcome)
      : undefined
  } catch {
    return undefined
  }
}
