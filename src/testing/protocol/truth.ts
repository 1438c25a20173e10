import { ZERO_HASH } from '../../events/index.ts'
import type { Head, OpenCommit, RecordedEvent } from '../../log/index.ts'
import { emptyFold, type Folded } from '../../projections/index.ts'
import { isUnfoldable } from './domain.ts'
import { check } from './failure.ts'
import type { Partition } from './partition.ts'
import type { ProtocolRules } from './rules.ts'
import { Tail } from './tail.ts'
import type { ModelRecord } from './wire.ts'

interface Moment {
  /** Index in the partition from which on this was so. */
  readonly from: number
  readonly folded: Folded
}

/**
 * The reader that reads every record the moment it is written, by the rules as they should be. What it finds is what is so; what the
 * others say is compared with it. It also stops and starts again after every single record.
 */
export class Truth {
  readonly tail: Tail
  /** Stream and base of each accepted commit, by id. */
  readonly accepted = new Map<string, { stream: number; base: number }>()
  /** Commits a stream was past when a copy of them came. */
  readonly behind = new Set<string>()
  /** Copies of a commit that were void, and a later one was accepted. */
  revived = 0
  readonly #partition: Partition
  readonly #rules: ProtocolRules
  readonly #moments: Moment[][]
  readonly #voidIds = new Set<string>()

  constructor(partition: Partition, rules: ProtocolRules) {
    this.#partition = partition
    this.#rules = rules
    this.#moments = partition.wire.keys.map(() => [{ from: 0, folded: emptyFold }])
    this.tail = new Tail(partition, rules, {
      accepted: (records) => this.#accept(records),
      voided: ({ reason, commitId }) => {
        this.#voidIds.add(commitId)
        if (reason === 'base-behind') this.behind.add(commitId)
      },
    })
  }

  /** Reads what has been appended. */
  follow(): void {
    while (this.tail.lag > 0) {
      this.tail.read(1)
      this.#restart()
    }
  }

  /** Whether a commit is accepted by now. */
  has(commitId: string): boolean {
    return this.accepted.has(commitId)
  }

  /** What a stream was at each moment from the first record at or behind `from` to the one before `to`, oldest first. */
  between(stream: number, from: number, to: number): Folded[] {
    const moments = this.#moments[stream] as Moment[]
    const out: Folded[] = []
    for (let i = moments.length - 1; i >= 0; i--) {
      const moment = moments[i] as Moment
      if (moment.from <= to) out.unshift(moment.folded)
      if (moment.from <= from) break
    }
    return out
  }

  #accept(records: readonly ModelRecord[]): void {
    const first = records[0] as ModelRecord
    const { id, base } = first.commit
    const stream = this.#partition.index.get(first.stream) as number
    check(!this.behind.has(id), 'void-not-final', () => `Commit ${id} was void behind its stream and accepted later.`)
    if (this.#voidIds.has(id)) this.revived++
    this.accepted.set(id, { stream, base })
    this.#moments[stream]?.push({ from: this.tail.cursor, folded: this.tail.view(stream).folded })
  }

  /** A reader that stops here and starts from the offset it may save must come to the same open commit, and find nothing else. */
  #restart(): void {
    const { cursor, open } = this.tail
    const last = this.#partition.records[cursor - 1] as ModelRecord
    const next = this.#rules.nextOffset(open, last)
    let again: OpenCommit<ModelRecord> | undefined
    let found = 0
    for (let i = this.#partition.indexOf(next); i < cursor; i++) {
      const step = this.#rules.arbitrate(again, this.#partition.records[i] as ModelRecord, () => undefined)
      again = step.open
      if (step.accepted || step.voids) found++
    }
    const same = again?.records.length === open?.records.length && again?.records[0]?.offset === open?.records[0]?.offset
    check(same && found === 0, 'restart-differs', () => `A reader stopped after offset ${last.offset} and started from ${next}.`)
  }

  /** Compares the accepted records with those the rule names when it has the whole partition in view. */
  checkRule(): void {
    const offsets = this.tail.streams.flatMap(({ records }) => records.map((record) => record.offset)).sort((a, b) => a - b)
    const named = acceptedOffsets(this.#partition.records)
    check(offsets.join() === named.join(), 'rule-differs', () => `Accepted are the offsets ${offsets}; the rule names ${named}.`)
  }

  /** A thread is in quarantine exactly at its first event that cannot be read or folded and that no repair names (R7). */
  checkQuarantines(): void {
    for (const { folded, records } of this.tail.streams) {
      const repaired = new Set(records.map(({ recorded }) => repairOf(recorded)))
      const first = records.find((record) => !isReadable(record.recorded) && !repaired.has(record.version))?.version
      check(
        folded.quarantine?.version === first,
        'quarantine-differs',
        () => `The thread is in quarantine at version ${folded.quarantine?.version}, and should be at ${first}.`,
      )
    }
  }
}

const isReadable = ({ event }: RecordedEvent): boolean => event !== undefined && !isUnfoldable(event)

const repairOf = ({ event }: RecordedEvent): number | undefined =>
  event?.type === 'thread.repaired/1' ? event.data.version : undefined

/** The acceptance rule (R5) written a second time, without a memory: a commit is accepted where it stands whole on its stream's head. */
function acceptedOffsets(records: readonly ModelRecord[]): number[] {
  const heads = new Map<string, Head>()
  const out: number[] = []
  for (let i = 0; i < records.length; i++) {
    const first = records[i] as ModelRecord
    const head = heads.get(first.stream) ?? { version: 0, hash: ZERO_HASH }
    if (!standsWhole(records, i, head)) continue
    const last = records[i + first.commit.size - 1] as ModelRecord
    for (let k = i; k < i + first.commit.size; k++) out.push((records[k] as ModelRecord).offset)
    heads.set(first.stream, last)
    i += first.commit.size - 1
  }
  return out
}

function standsWhole(records: readonly ModelRecord[], at: number, head: Head): boolean {
  const { commit, stream } = records[at] as ModelRecord
  let { version, hash } = head
  for (let index = 0; index < commit.size; index++) {
    const record = records[at + index]
    if (!record || record.stream !== stream || record.commit.id !== commit.id || record.commit.index !== index) return false
    if (record.commit.size !== commit.size) return false
    if (record.commit.base !== head.version || record.version !== version + 1 || record.previous !== hash) return false
    ;({ version, hash } = record)
  }
  return commit.size > 0
}
