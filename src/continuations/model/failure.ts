import { checkArgument, nameSchema } from '../names.ts'
import { exactKeys, invalidArgument } from './arguments.ts'

/** Why there is no result: a code, and whether trying again may help. Never a message, never a provider's words (§1.3). */
export class ContinuationFailure {
  readonly code: string
  readonly retryable: boolean

  /** @throws ThreadlogError `invalid_argument` */
  constructor(o: { code: string; retryable?: boolean }) {
    for (const key of Object.keys(o)) if (key !== 'code' && key !== 'retryable') throw invalidArgument(key, 'code and retryable')
    const { code, retryable = false } = o
    this.code = checkArgument(nameSchema, code, 'code')
    if (typeof retryable !== 'boolean') throw invalidArgument('retryable', 'true or false')
    this.retryable = retryable
    Object.freeze(this)
  }

  /** @throws ThreadlogError `invalid_argument` */
  static parse(value: unknown): ContinuationFailure {
    const { code, retryable } = exactKeys(value, ['code', 'retryable'], 'failure')
    return new ContinuationFailure({ code: code as string, retryable: retryable as boolean })
  }

  equals(other: { code: string; retryable: boolean }): boolean {
    return this.code === other.code && this.retryable === other.retryable
  }

  toJSON(): { code: string; retryable: boolean } {
    return { code: this.code, retryable: this.retryable }
  }
}
