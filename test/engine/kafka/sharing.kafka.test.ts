import { expect, test } from 'vitest'
import { threadStream } from '../../../src/events/index.ts'
import { partitionOf } from '../../../src/log/index.ts'
import { describeKafka, kafkaPlace } from '../../support/kafka/index.ts'
import { eventsOf } from '../../support/processes/streams.ts'
import { script } from '../../support/processes/worker.ts'
import { type Node, node, said, send, shared, shareOf, until, untilReceipts, waiting } from './intake-nodes.ts'

const NOTE = script([{ id: 'c1', name: 'note' }], 'done')
const streamOf = (thread: string) => threadStream({ application: 'shop', user: 'default', thread })
const names = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `${prefix}_${i}`)

describeKafka('the threads of a log, shared by engines', () => {
  // Row 76: state of other workers' keys was recovered and never freed. Here who has no part of a partition works on none of its threads.
  test('row 76: of four engines each runs the threads of its own partitions, and what one leaves the others take, and no more', async () => {
    await using place = await kafkaPlace()
    const nodes: Node[] = []
    try {
      for (let i = 0; i < 4; i++) nodes.push(await node(place))
      await shared(...nodes)
      const ownersOf = async (threads: readonly string[]) => {
        const runs = await Promise.all(threads.map((thread) => nodes[0]!.threads.start({ agent: 'worker', thread, input: NOTE })))
        for (const run of runs) expect((await run.result()).status).toBe('completed')
        const started = threads.map(async (thread) => {
          const events = await eventsOf(nodes[0]!.backend, streamOf(thread))
          const owner = events.flatMap((event) => (event.type === 'run.started/1' ? event.data.owner.id : []))[0]
          return [partitionOf(streamOf(thread), 4), nodes.findIndex(({ backend }) => backend.owners.self === owner)] as const
        })
        return Promise.all(started)
      }
      const before = nodes.map(shareOf)
      for (const [partition, owner] of await ownersOf(names(16, 'a'))) expect(before[owner]).toContain(partition)
      const left = nodes.pop()!
      await left.close()
      await shared(...nodes)
      const after = nodes.map(shareOf)
      // Whoever stays keeps what it had: only what was left behind moves.
      for (const [i, share] of after.entries()) expect(share).toEqual(expect.arrayContaining(before[i]!))
      for (const [partition, owner] of await ownersOf(names(16, 'b'))) expect(after[owner]).toContain(partition)
    } finally {
      await Promise.all(nodes.map((each) => each.close()))
    }
  }, 120_000)

  // Row 117: an owner that was still valid was fenced at each new generation and restarted itself, and so fenced the next one.
  test('row 117: five engines restarted one after the other: no other one stops, every run ends, every result has one receipt', async () => {
    await using place = await kafkaPlace()
    const nodes: Node[] = []
    try {
      for (let i = 0; i < 5; i++) nodes.push(await node(place))
      const stopped: number[] = []
      for (const [i, { engine }] of nodes.entries()) void engine.closed.then(() => stopped.push(i))
      const waits = await waiting(nodes[4]!.threads, names(20, 'w'))
      let sent = 0
      for (let i = 0; i < 5; i++) {
        const share = waits.slice(i * 4, i * 4 + 4)
        const sending = send(
          nodes[(i + 1) % 5]!.backend,
          share.map((wait) => [wait.thread.thread, said(wait)] as const),
        )
        sent += share.length
        await nodes[i]!.close()
        await sending
        expect(stopped).toEqual([i])
        stopped.length = 0
        nodes[i] = await node(place)
        void nodes[i]!.engine.closed.then(() => stopped.push(i))
      }
      const receipts = await untilReceipts(nodes[0]!.backend, sent)
      expect(receipts.map(({ verdict, final }) => `${verdict} ${final}`)).toEqual(Array(sent).fill('accepted true'))
      for (const wait of waits)
        await until(`the end of ${wait.thread.thread}`, async () => {
          const events = await eventsOf(nodes[0]!.backend, streamOf(wait.thread.thread))
          return events.at(-1)?.type === 'run.completed/1'
        })
      // A run that was cut off is recovered; nobody was fenced out of its place.
      expect(nodes.flatMap(({ problems }) => problems).filter((problem) => /intake|fenced|quarantine/.test(problem))).toEqual([])
    } finally {
      await Promise.all(nodes.map((each) => each.close()))
    }
  }, 240_000)
})
