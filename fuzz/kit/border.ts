import type { Random } from './random.ts'

/** What became of one input: taken, or refused with a code. */
export interface Outcome {
  readonly accepted: boolean
  readonly code: string
}

export const accepted = (code = 'accepted'): Outcome => ({ accepted: true, code })
export const refused = (code: string): Outcome => ({ accepted: false, code })

/** What stands behind a border: made before the first case, and again after a fault. */
export interface Rig<I> {
  /**
   * Feeds one input and checks what came of it.
   * @throws Fault when a promise is broken; anything else thrown counts as a crash
   */
  try(input: I): Promise<Outcome>
  /** Checks that are too dear for each case; runs now and then, and at the end. @throws Fault */
  settle?(): Promise<void>
  close(): Promise<void>
}

/** A place where bytes, text or values of others come in. Inputs are JSON, so that one can be kept in a file. */
export interface Border<I = unknown> {
  readonly name: string
  /** What is fed to what, in one line. */
  readonly about: string
  /** Milliseconds one case may take. */
  readonly limitMs: number
  /** Cases after which the rig is made anew. Default 2,000. */
  readonly renewAfter?: number
  /** Cases between two calls of `settle`. Default 200. */
  readonly settleAfter?: number
  open(): Promise<Rig<I>>
  /** The input follows from the random choices alone. */
  generate(random: Random): I
  /** Smaller inputs like this one, the boldest first. */
  simpler(input: I): Iterable<I>
}

export type FaultKind = 'crash' | 'hang' | 'rejection' | 'silent' | 'leak' | 'written' | 'uncoded' | 'damage'

/** A promise that was broken. `what` names the promise and is the same for every input that breaks it in this way. */
export class Fault extends Error {
  readonly kind: FaultKind
  readonly what: string
  readonly more: string

  constructor(kind: FaultKind, what: string, more = '') {
    super(`${kind}: ${what}${more === '' ? '' : ` (${more})`}`)
    this.kind = kind
    this.what = what
    this.more = more
  }
}

/** @throws Fault unless it holds */
export function promise(holds: boolean, kind: FaultKind, what: string, more = ''): asserts holds {
  if (!holds) throw new Fault(kind, what, more)
}
