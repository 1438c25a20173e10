import type { Command, Negative } from './domain.ts'
import type { ModelCommit } from './wire.ts'

/** What a command's caller is told. */
export interface Answer {
  readonly writer: number
  readonly stream: number
  readonly command: Command
  readonly held: number
  readonly outcome: 'accepted' | 'contention' | Negative
  /** Commit that applied it, for `accepted`. */
  readonly commitId: string | undefined
  /** Index in the partition: its length when the command came, what its writer had read, its length at the answer. */
  readonly came: number
  readonly read: number
  readonly now: number
  /** A process died over it. */
  readonly repeated: boolean
}

/** Told of what writers do. */
export interface WriterEvents {
  answered(answer: Answer): void
  /** The log has refused this commit, as its writer sees it. */
  refused(commit: ModelCommit): void
  ambiguous(): void
  resent(): void
}

/** A command under way. One per stream and process. */
export interface Slot {
  readonly command: Command
  readonly came: number
  readonly repeated: boolean
  /** `waiting`: for the barrier; `staged`: to be sent; `sent`: no answer yet; `acknowledged`: the log decides. */
  state: 'waiting' | 'staged' | 'sent' | 'acknowledged'
  held: number
  commit: ModelCommit | undefined
  acknowledged: { offset: number; end: number } | undefined
  conflicts: number
  /** Offset up to which the tail must have read before a negative answer. */
  barrier: number | undefined
}
