/** Everything that can become of a submitted result (design §6). */
export const verdicts = [
  'unreadable',
  'too-large',
  'invalid',
  'forbidden',
  'unknown',
  'held',
  'held-full',
  'wrong-scope',
  'erased',
  'quarantined',
  'schema-mismatch',
  'duplicate',
  'conflict',
  'cancelled',
  'expired',
  'abandoned',
  'stale-branch',
  'late',
  'proposal-changed',
  'accepted',
] as const
export type Verdict = (typeof verdicts)[number]

/** A verdict and why. Tells places and limits, never payload. */
export interface Judgement {
  readonly verdict: Verdict
  /** This submission itself is what answered the wait: nothing is left to do (row 7). */
  readonly recorded?: true
  /** Of the result that answered the wait, on `duplicate` and `conflict`. */
  readonly digest?: string
  readonly code?: string
  readonly path?: string
  readonly expected?: string
}

/** A judgement that ends the matter before any wait is looked at. */
export interface Refusal extends Judgement {
  readonly verdict: 'unreadable' | 'too-large' | 'invalid'
  readonly code: string
  readonly path: string
  readonly expected: string
}
