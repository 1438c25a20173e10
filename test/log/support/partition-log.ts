import fc from 'fast-check'
import { sha256Hex } from '../../../src/base/index.ts'
import { ZERO_HASH } from '../../../src/events/index.ts'
import {
  type ArbitrationRecord,
  arbitrate,
  type Head,
  nextOffset,
  type OpenCommit,
  type VoidReason,
} from '../../../src/log/index.ts'

/** One thing a writer, a broken network or a zombie does to a partition. */
interface Move {
  stream: number
  size: number
  on: 'head' | 'older' | 'ahead' | 'fork'
  send: 'whole' | 'torn' | 'twice' | 'split' | 'shuffled' | 'again'
  pick: number
}

const move: fc.Arbitrary<Move> = fc.record({
  stream: fc.nat(2),
  size: fc.integer({ min: 1, max: 4 }),
  on: fc.oneof(
    { weight: 6, arbitrary: fc.constant('head' as const) },
    fc.constantFrom('older' as const, 'ahead' as const, 'fork' as const),
  ),
  send: fc.oneof(
    { weight: 5, arbitrary: fc.constant('whole' as const) },
    fc.constantFrom('torn' as const, 'twice' as const, 'split' as const, 'shuffled' as const, 'again' as const),
  ),
  pick: fc.nat(1_000),
})

/** Records of a partition as concurrent, failing and repeating writers leave them; offsets rise with holes. */
export const partitionLog: fc.Arbitrary<ArbitrationRecord[]> = fc
  .tuple(fc.array(move, { maxLength: 25 }), fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 7 }))
  .map(([moves, steps]) => {
    const records = layOut(moves)
    let offset = 0
    return records.map((record, i) => {
      offset += steps[i % steps.length] as number
      return { ...record, offset }
    })
  })

function layOut(moves: Move[]): ArbitrationRecord[] {
  const laid: ArbitrationRecord[] = []
  const sent: ArbitrationRecord[][] = []
  const halves: ArbitrationRecord[] = []
  for (const [n, step] of moves.entries()) {
    const heads = readAll(laid).heads
    const commit = makeCommit(n, step, heads)
    const cut = step.pick % (commit.length + 1)
    switch (step.send) {
      case 'whole':
        laid.push(...commit)
        break
      case 'twice':
        laid.push(...commit, ...commit)
        break
      case 'torn':
        laid.push(...commit.slice(0, cut))
        break
      case 'split':
        laid.push(...commit.slice(0, cut))
        halves.push(...commit.slice(cut))
        break
      case 'shuffled':
        laid.push(...commit.slice(cut), ...commit.slice(0, cut))
        break
      case 'again':
        laid.push(...(sent[step.pick % Math.max(1, sent.length)] ?? commit))
    }
    sent.push(commit)
    if (step.pick % 3 === 0) laid.push(...halves.splice(0))
  }
  return laid
}

function makeCommit(n: number, { stream, size, on, pick }: Move, heads: Map<string, Head>): ArbitrationRecord[] {
  const key = sha256Hex(`stream ${stream}`)
  const head = heads.get(key) ?? { version: 0, hash: ZERO_HASH }
  const base = on === 'older' ? pick % (head.version + 1) : on === 'ahead' ? head.version + 1 + (pick % 3) : head.version
  let previous = on === 'head' ? head.hash : on === 'older' && base === 0 ? ZERO_HASH : sha256Hex(`fork ${n}`)
  return Array.from({ length: size }, (_, index) => {
    const record = {
      stream: key,
      version: base + index + 1,
      commit: { id: `c${n}`, base, index, size },
      previous,
      hash: '',
      offset: 0,
    }
    record.hash = sha256Hex(JSON.stringify(record))
    previous = record.hash
    return record
  })
}

export interface Reading {
  accepted: ArbitrationRecord[]
  voids: { reason: VoidReason; offsets: number[] }[]
  heads: Map<string, Head>
  open?: OpenCommit
}

/** Reads a partition from its start, stopping and starting again (with nothing but the saved offset and heads) after the records named. */
export function readAll(records: readonly ArbitrationRecord[], restartAfter: ReadonlySet<number> = new Set()): Reading {
  const reading: Reading = { accepted: [], voids: [], heads: new Map() }
  const restarts = new Set(restartAfter)
  for (let i = 0; i < records.length; i++) {
    const record = records[i] as ArbitrationRecord
    const step = arbitrate(reading.open, record, (stream) => reading.heads.get(stream))
    reading.open = step.open
    for (const group of step.voids ?? [])
      reading.voids.push({ reason: group.reason, offsets: group.records.map((r) => r.offset) })
    for (const accepted of step.accepted ?? []) {
      reading.accepted.push(accepted)
      reading.heads.set(accepted.stream, { version: accepted.version, hash: accepted.hash })
    }
    if (restarts.delete(i)) {
      const from = nextOffset(step.open, record)
      reading.open = undefined
      i = records.findIndex((candidate) => candidate.offset >= from) - 1
      if (i < -1) break
    }
  }
  return reading
}

/** The acceptance rule written a second time, with the whole partition in view: what every reader must find. */
export function acceptedOffsets(records: readonly ArbitrationRecord[]): number[] {
  const heads = new Map<string, Head>()
  const out: number[] = []
  for (let i = 0; i < records.length; i++) {
    const first = records[i] as ArbitrationRecord
    const commit = records.slice(i, i + first.commit.size)
    const head = heads.get(first.stream) ?? { version: 0, hash: ZERO_HASH }
    const whole =
      commit.length === first.commit.size &&
      commit.every(
        (record, index) =>
          record.commit.id === first.commit.id &&
          record.commit.index === index &&
          record.stream === first.stream &&
          record.version === head.version + index + 1 &&
          record.commit.base === head.version &&
          record.previous === (index === 0 ? head.hash : commit[index - 1]?.hash),
      )
    if (!whole) continue
    const last = commit[commit.length - 1] as ArbitrationRecord
    heads.set(first.stream, { version: last.version, hash: last.hash })
    out.push(...commit.map((record) => record.offset))
    i += commit.length - 1
  }
  return out
}
