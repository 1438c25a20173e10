import type { Head } from '../../log/index.ts'
import { unfoldableDraft } from './domain.ts'
import type { Network } from './network.ts'
import type { Partition } from './partition.ts'
import type { Disturbance } from './steps.ts'
import { type CommitParts, type ModelCommit, OTHER_HASH, type Parcel } from './wire.ts'

/** What a disturbance can see: the log as it is, and what is under way. */
export interface Surroundings {
  readonly partition: Partition
  readonly network: Network
  /** The newest accepted event of a stream. */
  head(stream: number): Head
  /** Some commit that a writer has under way. */
  underWay(pick: number): ModelCommit | undefined
}

const EVENT = { type: 'run.cancel-requested/1', data: { run_id: 'nobody', command_id: null, reason: 'model' } } as const

/** Appends what no writer of the model would. Returns false if there is nothing to do it with. */
export function disturb(around: Surroundings, how: Disturbance, stream: number, pick: number): boolean {
  const { partition, network } = around
  const { wire } = partition
  const head = around.head(stream)
  const parts = (on: Head, size = 1): CommitParts => ({
    stream,
    on,
    commandId: 'nobody',
    drafts: Array.from({ length: size }, () => EVENT),
  })
  const append = (...parcels: (Parcel | undefined)[]): boolean => {
    partition.append(parcels.filter((parcel) => parcel !== undefined))
    return true
  }
  switch (how) {
    case 'undecodable':
      return append(...wire.undecodable(parts(head)).parcels)
    case 'unfoldable':
      return append(...wire.commit({ ...parts(head), drafts: [unfoldableDraft] }).parcels)
    case 'garbage':
      return append(wire.garbage())
    case 'fork':
      return append(...wire.commit(parts({ version: head.version, hash: OTHER_HASH }, 1 + (pick % 2))).parcels)
    case 'wrong-base': {
      const version = head.version > 0 && pick % 2 === 0 ? head.version - 1 : head.version + 1
      return append(...wire.commit(parts({ version, hash: head.hash })).parcels)
    }
    case 'malformed':
      return append(wire.forged(wire.commit(parts(head)), 0, pick % 2 === 0 ? 'misnumbered' : 'misversioned'))
    case 'broken-chain': {
      const commit = wire.commit(parts(head, 2))
      return append(commit.parcels[0], wire.forged(commit, 1, 'unchained'))
    }
    case 'headless':
      return append(wire.commit(parts(head, 2)).parcels[1])
    case 'half':
      return append(...wire.commit(parts(head, 3)).parcels.slice(0, 1 + (pick % 2)))
    case 'ahead': {
      const before = around.underWay(pick)
      if (!before) return false
      const { parcels } = wire.commit({ ...parts(before.head), stream: before.stream })
      network.post(parcels)
      return append(...parcels)
    }
    case 'copy': {
      const again = partition.records[pick % Math.max(1, partition.records.length)]
      const copy = again ? partition.commitOf(again) : undefined
      return copy ? append(...copy) : false
    }
    case 'hole':
      partition.skip(1 + (pick % 3))
      return true
    case 'stray':
      return append(wire.stray())
  }
}
