import type { JsonValue } from '../../base/index.ts'

/** One thing `doctor` looked at. */
export interface Finding {
  readonly name: string
  /** `warning`: it works, and may not go well for long. */
  readonly state: 'ok' | 'warning' | 'error'
  /** What was found, in a sentence. */
  readonly says: string
  /** The same as values, for programs. */
  readonly facts: { readonly [name: string]: JsonValue }
}
