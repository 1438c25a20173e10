import { describe, expect, it } from 'vitest'
import { Payload } from '../../../src/base/index.ts'
import type { ProjectorTx, RecordedEvent } from '../../../src/log/index.ts'
import { encodeState, FOLD_VERSION, Folds, foldStream, stateHash } from '../../../src/projections/index.ts'
import { recordsOf } from '../../support/legal-threads.ts'
import { ThreadScript } from '../../support/thread-script.ts'

const script = new ThreadScript('order_1')
  .open()
  .request()
  .run({ calls: ['a'] })
  .suspend([{ call: 'a', wait: 'w-1' }])
  .answer('w-1')
const records = recordsOf(script.commits)
const other = recordsOf(new ThreadScript('other_1').open().request().commits)

/** A transaction that only knows the log, and perhaps one snapshot; says from where it was read. */
function transaction(snapshotAt?: number, hash?: string) {
  const reads: number[] = []
  const { state } = foldStream(records.slice(0, snapshotAt ?? 0))
  const bytes = Payload.of(encodeState(state)).bytes
  const tx = {
    get: (_: string, stream: string, version: number) =>
      snapshotAt !== undefined && stream === script.stream && version === FOLD_VERSION
        ? { version: snapshotAt, hash: hash ?? state.hash, state: bytes }
        : undefined,
    read: (stream: string, after = 0) => {
      reads.push(after)
      return [...records, ...other].filter((record) => record.stream === stream && record.version > after)
    },
  } as unknown as ProjectorTx
  return { tx, reads }
}

const hashes = (folds: Folds, tx: ProjectorTx, events: readonly RecordedEvent[]) =>
  folds.steps(tx, events).map((thread) => stateHash(thread.after.state))
const expected = (to: number) => stateHash(foldStream(records.slice(0, to)).state)

describe('Folds', () => {
  it('never reads while it follows', () => {
    const folds = new Folds()
    const { tx, reads } = transaction()
    for (let i = 0; i < records.length; i++) expect(hashes(folds, tx, records.slice(i, i + 1))).toEqual([expected(i + 1)])
    expect(reads).toEqual([])
  })

  it('gives projectors after the first the very same steps', () => {
    const folds = new Folds()
    const { tx, reads } = transaction()
    const first = folds.steps(tx, records)
    expect(folds.steps(tx, [...records])[0]).toBe(first[0])
    expect(reads).toEqual([])
  })

  it('folds a thread it does not know from the log, up to the events given', () => {
    const { tx, reads } = transaction()
    expect(hashes(new Folds(), tx, records.slice(3, 5))).toEqual([expected(5)])
    expect(reads).toEqual([0])
  })

  it('starts from the snapshot if the log has it', () => {
    const { tx, reads } = transaction(3)
    expect(hashes(new Folds(), tx, records.slice(5))).toEqual([expected(records.length)])
    expect(reads).toEqual([2])
  })

  it('does not believe a snapshot the log does not have, or one from ahead', () => {
    const { tx, reads } = transaction(3, 'e'.repeat(64))
    expect(hashes(new Folds(), tx, records.slice(5))).toEqual([expected(records.length)])
    expect(reads).toEqual([0])
    const ahead = transaction(6)
    expect(hashes(new Folds(), ahead.tx, records.slice(4, 5))).toEqual([expected(5)])
    expect(ahead.reads).toEqual([0])
  })

  it('forgets the threads longest unused', () => {
    const folds = new Folds({ threads: 1, events: 1000 })
    const { tx, reads } = transaction()
    hashes(folds, tx, records.slice(0, 2))
    hashes(folds, tx, other)
    expect(hashes(folds, tx, records.slice(2))).toEqual([expected(records.length)])
    expect(reads).toEqual([0])
  })

  it('goes back to events it has seen', () => {
    const folds = new Folds()
    const { tx } = transaction()
    hashes(folds, tx, records)
    expect(hashes(folds, tx, records.slice(2, 4))).toEqual([expected(4)])
    expect(hashes(folds, tx, records.slice(4))).toEqual([expected(records.length)])
  })
})
