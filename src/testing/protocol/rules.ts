import {
  type Arbitration,
  arbitrate,
  type Fate,
  fateOf,
  type Head,
  nextOffset,
  type OpenCommit,
  type RecordedEvent,
} from '../../log/index.ts'
import { type Folded, foldAll, foldStream } from '../../projections/index.ts'
import type { ModelCommit, ModelRecord } from './wire.ts'

/** What a writer knows of one of its commits. */
export interface FateQuestion {
  readonly commit: ModelCommit
  /** Commit id of the accepted record at (stream, base + 1), as far as the writer has read. */
  readonly standing: string | undefined
  /** Whether the log has said that it is written, and where the copy it spoke of begins and what follows it. */
  readonly acknowledged: { readonly offset: number; readonly end: number } | undefined
  /** True if the record at this offset is among the accepted ones the writer has read. */
  isAccepted(offset: number): boolean
  /** True if the writer has read everything before this offset. */
  hasRead(end: number): boolean
  /** True if the writer has read records of this commit that are void. */
  isVoid(): boolean
}

/**
 * Everything the protocol decides. The defaults are the code that every log runs; the model itself only carries records about.
 * Tests put faulty rules in their place, to see that the model notices ({@link mutations}).
 */
export interface ProtocolRules {
  arbitrate(
    open: OpenCommit<ModelRecord> | undefined,
    record: ModelRecord,
    headOf: (stream: string) => Head | undefined,
  ): Arbitration<ModelRecord>
  nextOffset(open: OpenCommit<ModelRecord> | undefined, last: ModelRecord): number
  fate(question: FateQuestion): Fate
  /** Adds an accepted record. `all` gives the accepted records of the stream, this one included: a repair folds anew. */
  fold(folded: Folded, record: RecordedEvent, all: () => readonly RecordedEvent[]): Folded
  /** A negative answer waits until the writer has read to the end the log had when the command came. */
  readonly barrier: boolean
  /** State and next offset are saved together. Otherwise the offset is saved first, and a restart may come between. */
  readonly savesTogether: boolean
  /** After a failed send: the same commit again, or a new one decided on what the writer has read. */
  readonly afterFailure: 'resend' | 'decide-again'
  /** A command that is asked again is looked for among the accepted events before it is decided. */
  readonly knowsCommands: boolean
  /** The producer may acknowledge a batch after a failed send without writing it (kafkajs's idempotent producer: H1). */
  readonly acknowledgesUnwritten: boolean
  /** A commit that is acknowledged, read and still undecided is sent again. */
  readonly resendsUndecided: boolean
}

export const protocolRules: ProtocolRules = {
  arbitrate,
  nextOffset,
  fate: ({ commit, standing }) => fateOf(commit.id, standing),
  fold(folded, record, all) {
    const next = foldAll([record], folded)
    return next === 'refold' ? foldStream(all()) : next
  },
  barrier: true,
  savesTogether: true,
  afterFailure: 'resend',
  knowsCommands: true,
  acknowledgesUnwritten: false,
  resendsUndecided: true,
}
