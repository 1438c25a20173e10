import { ZERO_HASH } from '../../events/index.ts'
import { type Arbitration, arbitrate, type Head, type OpenCommit, type VoidReason } from '../../log/index.ts'
import { foldRecord } from '../../projections/index.ts'
import { type ProtocolRules, protocolRules } from './rules.ts'
import type { ModelRecord } from './wire.ts'

type Arbitrate = ProtocolRules['arbitrate']
type HeadOf = (stream: string) => Head | undefined

/** Faults of the protocol that somebody could write, each with the rule it breaks. */
const faults = {
  /** Every record is accepted as it comes. */
  'accept-without-reducer': { arbitrate: (_, record) => ({ accepted: [record] }) },
  /** An acknowledged commit counts as accepted. */
  'accept-when-acknowledged': {
    fate: (question) => (question.acknowledged ? 'accepted' : protocolRules.fate(question)),
  },
  /** The fate is that of the copy the acknowledgement spoke of (H2). */
  'fate-from-acknowledged-offset': {
    fate({ acknowledged, isAccepted, hasRead }) {
      if (!acknowledged || !hasRead(acknowledged.end)) return 'open'
      return isAccepted(acknowledged.offset) ? 'accepted' : 'refused'
    },
  },
  /** A void copy of a commit counts as its refusal. */
  'void-is-refused': {
    fate: (question) => (question.isVoid() ? 'refused' : protocolRules.fate(question)),
  },
  /** Negative answers come from whatever the writer has read (R15, H7). */
  'no-barrier': { barrier: false },
  /** A reader saves the offset behind the last record, also inside a commit (H4). */
  'restart-behind-open-commit': { nextOffset: (_, last) => last.offset + 1 },
  /** A reader saves its offset before its state. */
  'offset-saved-first': { savesTogether: false },
  /** Acceptance looks at the hash only. */
  'base-unchecked': { arbitrate: judging((record, head) => record.previous === head.hash) },
  /** Acceptance looks at the base only (H8). */
  'hash-unchecked': { arbitrate: judging((record, head) => record.commit.base === head.version) },
  /** Acceptance asks only that the version is free (H5). */
  'version-free-is-enough': { arbitrate: judging((record, head) => record.commit.base >= head.version) },
  /** Records of others between those of a commit change nothing (H4). */
  'interleaving-ignored': { arbitrate: tolerant },
  /** A commit is accepted with its first record. */
  'incomplete-accepted': { arbitrate: (_, record, headOf) => arbitrate(undefined, whole(record), headOf) },
  /** After a failed send the command is decided again under a new commit id. */
  'decide-again-after-failure': { afterFailure: 'decide-again' },
  /** A command asked again after a crash is decided as if it were new. */
  'repeated-command-unknown': { knowsCommands: false },
  /** The producer acknowledges what it has not written (H1), and nobody looks. */
  'acknowledged-unwritten': { acknowledgesUnwritten: true, resendsUndecided: false },
  /** An acknowledged commit whose copy was void is waited for. */
  'undecided-waited-for': { resendsUndecided: false },
  /** An event that cannot be read is passed over (R7). */
  'unreadable-skipped': {
    fold: (folded, record) => (record.event ? foldRecord(folded, record) : { ...folded, head: record }),
  },
  /** A repair is folded like any event: the thread stays in quarantine. */
  'repair-not-refolded': { fold: foldRecord },
} as const satisfies Record<string, Partial<ProtocolRules>>

/** Name of a fault that can be planted. */
export type Mutation = keyof typeof faults

/** Faults put into the rules of writers and readers; `everywhere` also of the reader that the others are compared with. */
export interface Planted {
  readonly mutations: readonly Mutation[]
  readonly everywhere?: boolean
}

/** All faults that can be planted. */
export const mutations = Object.keys(faults) as Mutation[]

/** The rules with faults in them. */
export const mutated = (names: readonly Mutation[]): ProtocolRules =>
  Object.assign({}, protocolRules, ...names.map((name) => faults[name]))

/** Real arbitration, but for the last look at the stream's head: what `fits` is accepted there too. */
function judging(fits: (first: ModelRecord, head: Head) => boolean): Arbitrate {
  return (open, record, headOf: HeadOf) => {
    const step = arbitrate(open, record, headOf)
    const judged = step.voids?.at(-1)
    const first = judged?.records[0]
    if (!judged || !first || !HEAD_REASONS.has(judged.reason)) return step
    if (!fits(first, headOf(first.stream) ?? { version: 0, hash: ZERO_HASH })) return step
    return { ...step, accepted: judged.records, voids: step.voids?.slice(0, -1) }
  }
}

const HEAD_REASONS: ReadonlySet<VoidReason> = new Set<VoidReason>(['base-behind', 'base-ahead', 'head-mismatch'])

function tolerant(open: OpenCommit<ModelRecord> | undefined, record: ModelRecord, headOf: HeadOf): Arbitration<ModelRecord> {
  const step = arbitrate(open, record, headOf)
  const interrupted = open && step.voids?.[0]?.reason === 'interrupted' && !step.open
  return interrupted ? { ...step, open, voids: step.voids?.slice(1) } : step
}

const whole = (record: ModelRecord): ModelRecord => ({
  ...record,
  commit: { ...record.commit, base: record.version - 1, index: 0, size: 1 },
})
