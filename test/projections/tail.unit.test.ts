import { describe, expect, it } from 'vitest'
import { fatal, retryLater } from '../../src/base/index.ts'
import { type EventLog, openMemoryLog, type RecordedEvent } from '../../src/log/index.ts'
import { Tail } from '../../src/projections/index.ts'
import { ThreadScript } from '../support/thread-script.ts'

describe('Tail', () => {
  it('tells listeners of one stream, and of all, what is accepted from now on', async () => {
    const backend = await openMemoryLog()
    const tail = new Tail(backend.events)
    const [one, two] = [new ThreadScript('a_1').open().request(), new ThreadScript('a_2').open()]
    const seen: string[] = []
    const name = (record: RecordedEvent) => `${record.stream === one.stream ? 'one' : 'two'} ${record.version}`
    tail.on(one.stream, (record) => seen.push(`stream: ${name(record)}`))
    const all = new Promise<void>((resolve) => {
      tail.on(undefined, (record) => {
        seen.push(`all: ${name(record)}`)
        if (record.version === 2) resolve()
      })
    })
    const stopped = tail.on(one.stream, () => seen.push('never'))
    stopped()
    for (const commit of [...two.commits, ...one.commits]) await backend.events.append(commit)
    await all
    expect(seen.filter((line) => line.startsWith('all'))).toEqual(['all: two 1', 'all: one 1', 'all: one 2'])
    await expect.poll(() => seen.filter((line) => line.startsWith('stream'))).toEqual(['stream: one 1', 'stream: one 2'])
    expect(seen).not.toContain('never')
    await tail.close()
    expect(tail.closed).toBe(true)
    await tail.ended
    await backend.close()
  })

  it('goes on after a condition that passes, and ends quietly with what does not', async () => {
    const backend = await openMemoryLog()
    const script = new ThreadScript('a_1').open().request()
    const faults = [retryLater('log_busy', 'locked'), fatal('log_damaged', 'damaged')]
    let follows = 0
    const events: EventLog = {
      ...backend.events,
      barrier: () => backend.events.barrier(),
      async *follow(o: Parameters<EventLog['follow']>[0]) {
        follows++
        const fault = faults.shift()
        if (fault?.disposition === 'retry') throw fault
        yield* take(backend.events.follow(o), 2)
        throw fault
      },
    } as EventLog
    const tail = new Tail(events)
    const seen: number[] = []
    tail.on(undefined, (record) => seen.push(record.version))
    await expect.poll(() => follows).toBe(2)
    for (const commit of script.commits) await backend.events.append(commit)
    await tail.ended
    expect(seen).toEqual([1, 2])
    expect(tail.closed).toBe(true)
    await backend.close()
  })
})

async function* take<T>(source: AsyncIterable<T[]>, count: number): AsyncGenerator<T[]> {
  let seen = 0
  for await (const items of source) {
    yield items
    if ((seen += items.length) >= count) return
  }
}
