import { describe, expect, it } from 'vitest'
import { openMemoryLog, type RecordedEvent } from '../../src/log/index.ts'
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
})
