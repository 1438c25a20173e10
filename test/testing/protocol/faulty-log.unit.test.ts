import { describe, expect, test } from 'vitest'
import { isThreadlogError } from '../../../src/base/index.ts'
import { type Commit, encodeCommit, threadStream, ZERO_HASH } from '../../../src/events/index.ts'
import { openMemoryLog, type RecordedEvent } from '../../../src/log/index.ts'
import { faultyLog, type LogFaults } from '../../../src/testing/index.ts'

const stream = threadStream({ application: 'a', user: 'u', thread: 't' })
const NONE: LogFaults = { replyLost: 0, requestLost: 0, late: 0, twice: 0, lag: 0 }

function commitOn(base: { version: number; hash: string } | undefined, n: number): Commit {
  const actor = { kind: 'library', id: 'test', source: 'test' }
  const meta = { stream, base: base?.version ?? 0, previous: base?.hash ?? ZERO_HASH, id: n.toString(16).padStart(32, '0') }
  return encodeCommit({ ...meta, time: n, actor }, [{ type: 'thread.repaired/1', data: { version: 1, reason: 'test' } }])
}

const opened = async (faults: LogFaults, seed = 1) => {
  const backend = await openMemoryLog()
  const log = faultyLog(backend.events, { seed, ...NONE, ...faults })
  return { inner: backend.events, log, [Symbol.asyncDispose]: () => backend.close() }
}

const isAmbiguous = (work: Promise<unknown>) =>
  work.then(
    () => false,
    (error: unknown) => isThreadlogError(error, 'append_ambiguous') && error.disposition === 'retry',
  )

async function readAll(pages: AsyncIterable<RecordedEvent[]>): Promise<number[]> {
  const versions: number[] = []
  for await (const page of pages) versions.push(...page.map(({ version }) => version))
  return versions
}

describe('faultyLog', () => {
  test('without faults it is the log', async () => {
    await using at = await opened({})
    const { accepted, head } = await at.log.append(commitOn(undefined, 1))
    expect(accepted).toBe(true)
    expect(await at.log.head(stream)).toEqual(head)
    expect(await readAll(at.log.read(stream))).toEqual([1])
    expect(at.log.injected).toEqual({})
    expect([at.log.id, at.log.partitions, at.log.partitionOf(stream)]).toEqual([at.inner.id, 1, 0])
  })

  test('a lost reply: written, and the same commit again is accepted', async () => {
    await using at = await opened({ replyLost: 100 })
    const commit = commitOn(undefined, 1)
    expect(await isAmbiguous(at.log.append(commit))).toBe(true)
    expect((await at.inner.head(stream))?.version).toBe(1)
    await at.log.settle()
    expect((await at.log.append(commit)).accepted).toBe(true)
    expect(at.log.injected).toEqual({ replyLost: 1 })
  })

  test('a lost request: not written', async () => {
    await using at = await opened({ requestLost: 100 })
    expect(await isAmbiguous(at.log.append(commitOn(undefined, 1)))).toBe(true)
    expect(await at.inner.head(stream)).toBeUndefined()
  })

  test('what is late is written when it settles, unless its stream has gone further', async () => {
    await using at = await opened({ late: 100 })
    expect(await isAmbiguous(at.log.append(commitOn(undefined, 1)))).toBe(true)
    await at.inner.append(commitOn(undefined, 2))
    await at.log.settle()
    expect((await readAll(at.inner.read(stream))).length).toBe(1)
  })

  test('a commit written twice is answered as one', async () => {
    await using at = await opened({ twice: 100 })
    expect((await at.log.append(commitOn(undefined, 1))).accepted).toBe(true)
    expect((await at.inner.head(stream))?.version).toBe(1)
  })

  test('reads lag until the barrier', async () => {
    await using at = await opened({ lag: 100 })
    const { head } = await at.inner.append(commitOn(undefined, 1))
    expect(await at.log.head(stream)).toBeUndefined()
    expect(await readAll(at.log.read(stream))).toEqual([])
    await at.log.barrier()
    expect(await at.log.head(stream)).toEqual(head)
    const { head: second } = await at.inner.append(commitOn(head, 2))
    expect(await at.log.head(stream)).toEqual(head)
    expect(await readAll(at.log.read(stream))).toEqual([1])
    await at.log.settle()
    expect(await at.log.head(stream)).toEqual(second)
  })

  test('a refusal shows the head that refused', async () => {
    await using at = await opened({ lag: 100 })
    await at.inner.append(commitOn(undefined, 1))
    const { accepted, head } = await at.log.append(commitOn(undefined, 2))
    expect(accepted).toBe(false)
    expect(await at.log.head(stream)).toEqual(head)
  })

  test('what was followed is read', async () => {
    await using at = await opened({ lag: 100 })
    await at.inner.append(commitOn(undefined, 1))
    for await (const _page of at.log.follow({ from: new Map([[0, 0n]]) })) break
    expect(await readAll(at.log.read(stream))).toEqual([1])
  })

  test('the same seed gives the same faults', async () => {
    const runs = await Promise.all(
      [7, 7, 8].map(async (seed) => {
        await using at = await opened({ replyLost: 30, requestLost: 30 }, seed)
        const out: boolean[] = []
        for (let n = 1; n <= 20; n++) out.push(await isAmbiguous(at.log.append(commitOn(undefined, n))))
        return out.join()
      }),
    )
    expect(runs[0]).toBe(runs[1])
    expect(runs[0]).not.toBe(runs[2])
  })
})
