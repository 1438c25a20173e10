import type { Partition } from './partition.ts'
import type { Send } from './steps.ts'
import type { Parcel } from './wire.ts'
import type { Batch } from './writer.ts'

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
    const { writer } = batch
    const parcels = batch.commits.flatMap((commit) => commit.parcels)
    const first = this.#partition.end
    const some = 1 + (cut % Math.max(1, parcels.length - 1))
    switch (send) {
      case 'delivered':
        this.#partition.append(parcels)
        return writer.acknowledged(batch, first)
      case 'reply-lost':
        this.#partition.append(parcels)
        return writer.failed(batch)
      case 'reply-late':
        this.#partition.append(parcels)
        this.#transits.push({ parcels: [], batch, offset: first })
        return
      case 'request-lost':
        return writer.failed(batch)
      case 'late':
        this.#transits.push({ parcels, batch, offset: undefined })
        return
      case 'twice':
        this.#partition.append([...parcels, ...parcels])
        return writer.acknowledged(batch, first + parcels.length)
      case 'torn':
        this.#partition.append(parcels.slice(0, some))
        return writer.failed(batch)
      case 'split':
        this.#partition.append(parcels.slice(0, some))
        this.#transits.push({ parcels: parcels.slice(some), batch, offset: first })
    }
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
