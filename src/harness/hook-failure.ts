import { isThreadlogError, type JsonObject } from '../base/index.ts'
import { errorName } from './error-name.ts'

const made = new WeakSet<object>()

/** Looks at nothing of what it is given: tools may throw what cannot be looked at. */
export const isHookFailure = (error: unknown): error is HookFailure =>
  typeof error === 'object' && error !== null && made.has(error)

/** Why a run ended: a hook threw, or gave what cannot be gone on with. */
export class HookFailure extends Error {
  readonly capability: string
  readonly hook: string
  /** What the hook threw. */
  override readonly cause: unknown

  constructor(capability: string, hook: string, cause: unknown) {
    super(`The hook ${hook} of a capability failed.`)
    this.name = 'HookFailure'
    this.capability = capability
    this.hook = hook
    this.cause = cause
    made.add(this)
  }

  /** What a call that it kept from running has come to. */
  static readonly content: JsonObject = { error: { code: 'capability_failed', retryable: false } }
}

/** How a run fails by it. What a hook threw may hold anything: only its name is told. */
export const hookFailing = ({
  capability,
  hook,
  cause,
}: HookFailure): { code: string; message: string; details: JsonObject } => ({
  code: 'capability_failed',
  message: `The hook ${hook} of the capability ${capability} failed.`,
  details: { capability, hook, error_type: errorName(cause), ...(isThreadlogError(cause) ? { error_code: cause.code } : {}) },
})
