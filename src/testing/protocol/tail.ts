import type { StreamKey } from '../../events/index.ts'
import type { Head, OpenCommit, VoidReason } from '../../log/index.ts'
import { emptyFold, type Folded, stateHash } from '../../projections/index.ts'
import { check } from './failure.ts'
import type { Partition } from './partition.ts'
import type { ProtocolRules } from './rules.ts'
import type { ModelRecord } from './wire.ts'

/** What a node knows of one stream. */
export interface StreamView {
  folded: Folded
  /** Accepted records, by version - 1. */
  readonly records: ModelRecord[]
}

/** Records a node found void, by the offset of the first. */
export interface VoidSeen {
  readonly reason: VoidReason
  readonly offset: number
  readonly records: number
  readonly commitId: string
}

interface Saved {
  readonly next: number
  readonly streams: readonly { readonly folded: Folded; readonly length: number }[]
  readonly voids: number
}

/** Told of what a tail finds, in log order. */
export interface TailEvents {
  accepted?(records: readonly ModelRecord[]): void
  voided?(found: VoidSeen): void
}

/** One process's reading of the partition: arbitration, fold, and what it has saved of them. */
export class Tail {
  readonly streams: readonly StreamView[]
  readonly voids: VoidSeen[] = []
  /** Index in the partition of the record to read next. */
  cursor = 0
  open: OpenCommit<ModelRecord> | undefined
  readonly #partition: Partition
  readonly #rules: ProtocolRules
  readonly #events: TailEvents
  readonly #index: ReadonlyMap<StreamKey, number>
  readonly #headOf: (stream: StreamKey) => Head | undefined
  #saved: Saved
  #before: Saved

  constructor(partition: Partition, rules: ProtocolRules, events: TailEvents = {}) {
    this.#partition = partition
    this.#rules = rules
    this.#events = events
    this.#index = partition.index
    this.streams = partition.wire.keys.map(() => ({ folded: emptyFold, records: [] }))
    this.#headOf = (stream) => {
      const view = this.streams[this.#index.get(stream) ?? -1]
      return view && view.records.length > 0 ? view.folded.head : undefined
    }
    this.#saved = this.#before = this.#snapshot(0)
  }

  /** Records not yet read. */
  get lag(): number {
    return this.#partition.records.length - this.cursor
  }

  view(stream: number): StreamView {
    return this.streams[stream] as StreamView
  }

  /** Commit id of the accepted record at a version. */
  standing(stream: number, version: number): string | undefined {
    return this.view(stream).records[version - 1]?.commit.id
  }

  /** True if everything before `offset` is read. */
  hasRead(offset: number): boolean {
    return this.#partition.indexOf(offset) <= this.cursor
  }

  read(count: number): void {
    const end = Math.min(this.cursor + count, this.#partition.records.length)
    while (this.cursor < end) this.#step()
  }

  #step(): void {
    const record = this.#partition.read(this.cursor++)
    const { open, voids, accepted } = this.#rules.arbitrate(this.open, record, this.#headOf)
    this.open = open
    if (voids)
      for (const { reason, records } of voids) {
        const first = records[0] as ModelRecord
        const found = { reason, offset: first.offset, records: records.length, commitId: first.commit.id }
        this.voids.push(found)
        this.#events.voided?.(found)
      }
    if (accepted) {
      for (const one of accepted) this.#accept(one)
      this.#events.accepted?.(accepted)
    }
  }

  #accept(record: ModelRecord): void {
    const view = this.streams[this.#index.get(record.stream) as number]
    check(view !== undefined, 'version-gap', () => 'A record of no stream was accepted.')
    const { folded, records } = view as StreamView
    check(
      record.version === folded.head.version + 1 && record.previous === folded.head.hash,
      'version-gap',
      () =>
        `Offset ${record.offset} was accepted as version ${record.version} after version ${folded.head.version}, naming ${record.previous === folded.head.hash ? 'its' : 'another'} hash.`,
    )
    records.push(record)
    ;(view as StreamView).folded = this.#rules.fold(folded, record.recorded, () => records.map((one) => one.recorded))
  }

  /** Saves state and next offset. By rules that do not save them together, the state is still the one of the save before. */
  save(): void {
    const last = this.#partition.records[this.cursor - 1]
    if (!last) return
    const next = this.#rules.nextOffset(this.open, last)
    const now = this.#snapshot(next)
    this.#saved = this.#rules.savesTogether ? now : { ...this.#before, next }
    this.#before = now
  }

  /** Starts again from what is saved. */
  restart(): void {
    const { next, streams, voids } = this.#saved
    this.cursor = this.#partition.indexOf(next)
    this.open = undefined
    this.voids.length = voids
    for (const [n, { folded, length }] of streams.entries()) {
      const view = this.view(n)
      view.folded = folded
      view.records.length = length
    }
  }

  #snapshot(next: number): Saved {
    return {
      next,
      streams: this.streams.map(({ folded, records }) => ({ folded, length: records.length })),
      voids: this.voids.length,
    }
  }
}

/** A text that is equal for two tails exactly if they know the same: heads, states, quarantines. */
export const fingerprint = (tail: Tail, full: boolean): string =>
  tail.streams
    .map(({ folded, records }) => {
      const { head, quarantine, state } = folded
      const known = full
        ? stateHash(state)
        : `${state.version} ${state.hash} ${state.run?.attempt} ${state.requested.length} ${state.runs.size}`
      return `${records.length} ${head.version} ${head.hash} ${quarantine?.version} ${known}`
    })
    .join('\n')

export const voidText = (voids: readonly VoidSeen[]): string =>
  voids.map(({ reason, offset, records }) => `${reason} ${offset}+${records}`).join('\n')
