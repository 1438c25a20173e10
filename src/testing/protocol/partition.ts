import type { StreamKey } from '../../events/index.ts'
import type { ModelRecord, Parcel, Wire } from './wire.ts'

/** One partition: anybody may append, and the order in which things arrive is the order. */
export class Partition {
  readonly wire: Wire
  /** Numbers of the streams by their keys. */
  readonly index: ReadonlyMap<StreamKey, number>
  readonly records: ModelRecord[] = []
  /** Offset the next record gets. */
  end = 0

  constructor(wire: Wire) {
    this.wire = wire
    this.index = new Map(wire.keys.map((key, n) => [key, n]))
  }

  append(parcels: readonly Parcel[]): void {
    for (const parcel of parcels) this.records.push(this.wire.place(parcel, this.end++))
  }

  /** Offsets that no record gets, as aborted transactions and markers leave them. */
  skip(offsets: number): void {
    this.end += offsets
  }

  /** The record at an index, read as by a process of its own. */
  read(index: number): ModelRecord {
    return this.wire.reread(this.records[index] as ModelRecord)
  }

  /** The records of the whole commit that a record belongs to, if they all stand behind each other somewhere. */
  commitOf({ commit }: ModelRecord): readonly Parcel[] | undefined {
    if (commit.size < 1) return undefined
    const { records } = this
    for (let i = 0; i + commit.size <= records.length; i++) {
      const whole = records.slice(i, i + commit.size)
      if (whole.every((record, index) => record.commit.id === commit.id && record.commit.index === index))
        return whole.map((record) => this.wire.parcel(record))
    }
    return undefined
  }

  /** Index of the first record at or behind an offset. */
  indexOf(offset: number): number {
    let [low, high] = [0, this.records.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.records[middle] as ModelRecord).offset < offset) low = middle + 1
      else high = middle
    }
    return low
  }
}
