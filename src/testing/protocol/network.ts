import type { Partition } from './partition.ts'
import type { Send } from './steps.ts'
import type { ModelCommit, Parcel } from './wire.ts'

/** Who sends, and hears what has become of it. */
export interface Sender {
  /** The log says that the batch is written, its first record at `offset`. */
  acknowledged(batch: Batch, offset: number): void
  /** Nobody knows whether the batch is written. */
  failed(batch: Batch): void
}

/** One send: the commits that had to be sent, one behind the other. */
export interface Batch {
  readonly writer: Sender
  readonly commits: readonly ModelCommit[]
}

/** Something under way: records to write, then an answer to who sent them. */
interface Transit {
  readonly parcels: readonly Parcel[]
  readonly batch: Batch | undefined
  /** Where the batch began, if its first records are written already. */
  readonly offset: number | undefined
}

/** What lies between writers and the partition. */
export class Network {
  readonly #partition: Partition
  readonly #transits: Transit[] = []

  constructor(partition: Partition) {
    this.#partition = partition
  }

  get underWay(): number {
    return this.#transits.length
  }

  send(batch: Batch, send: Send, cut: number): void {
    const parcels = batch.commits.flatMap((commit) => commit.parcels)
    const { now, later, answer, from = 0 } = courseOf(send, parcels, 1 + (cut % Math.max(1, parcels.length - 1)))
    const offset = this.#partition.end
    this.#partition.append(now)
    if (answer === 'acknowledged') batch.writer.acknowledged(batch, offset + from)
    else if (answer === 'failed') batch.writer.failed(batch)
    else this.#transits.push({ parcels: later ?? [], batch, offset: now.length > 0 ? offset : undefined })
  }

  /** Records of nobody that will arrive some time. */
  post(parcels: readonly Parcel[]): void {
    this.#transits.push({ parcels, batch: undefined, offset: undefined })
  }

  /** One of the things under way arrives. */
  deliver(pick: number): boolean {
    const [transit] = this.#transits.splice(pick % Math.max(1, this.#transits.length), 1)
    if (!transit) return false
    const { parcels, batch, offset } = transit
    const first = offset ?? this.#partition.end
    this.#partition.append(parcels)
    batch?.writer.acknowledged(batch, first)
    return true
  }
}

interface Course {
  /** Written at once, and written some time. */
  readonly now: readonly Parcel[]
  readonly later?: readonly Parcel[]
  readonly answer: 'acknowledged' | 'failed' | 'later'
  /** Which of the written records an acknowledgement speaks of. */
  readonly from?: number
}

function courseOf(send: Send, parcels: readonly Parcel[], cut: number): Course {
  switch (send) {
    case 'delivered':
      return { now: parcels, answer: 'acknowledged' }
    case 'reply-lost':
      return { now: parcels, answer: 'failed' }
    case 'reply-late':
      return { now: parcels, answer: 'later' }
    case 'request-lost':
      return { now: [], answer: 'failed' }
    case 'late':
      return { now: [], later: parcels, answer: 'later' }
    case 'twice':
      return { now: [...parcels, ...parcels], answer: 'acknowledged', from: parcels.length }
    case 'torn':
      return { now: parcels.slice(0, cut), answer: 'failed' }
    case 'split':
      return { now: parcels.slice(0, cut), later: parcels.slice(cut), answer: 'later' }
  }
}
