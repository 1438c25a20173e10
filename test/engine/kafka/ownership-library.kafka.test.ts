import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog, type Wait } from '../../../src/index.ts'
import { describeKafka, describeOwnKafka, kafkaPlace, ownBroker } from '../../support/kafka/index.ts'
import { Child } from '../../support/processes/child.ts'
import { effects } from '../../support/processes/ledger.ts'
import { eventsOf } from '../../support/processes/streams.ts'
import { script, workerAgent } from '../../support/processes/worker.ts'
import { node, said, until } from './intake-nodes.ts'

const NODE = '../../engine/kafka/ownership-node.ts'
const NOTE = script([{ id: 'c1', name: 'note' }], 'done')
const CONFIRM = script([{ id: 'c1', name: 'confirm' }], 'done')
const ASK = script([{ id: 'a1', name: 'ask' }], 'done')

/** What ends within `ms`; fails otherwise. Generous: what hangs would hang for much longer. */
async function endsWithin(ms: number, work: Promise<unknown>): Promise<void> {
  const late = Symbol('late')
  expect(await Promise.race([work, delay(ms, late)])).not.toBe(late)
}

describeKafka('library mode on Kafka', () => {
  test('a process that serves nothing runs, streams, and answers; a run of it that waits is resumed by an engine', async () => {
    await using place = await kafkaPlace()
    await using engine = await node(place)
    const log = await place.open()
    await using threads = await openThreadlog({ log, application: 'shop', agents: [workerAgent({ ledger: place.replica('l') })] })
    expect(log.assignment?.share).toBeUndefined()

    expect(await threads.run('worker', { thread: 'thread_run', input: NOTE })).toMatchObject({
      status: 'completed',
      output: 'done',
    })
    const told: string[] = []
    for await (const each of threads.stream('worker', { thread: 'thread_stream', input: NOTE }))
      told.push(each.type === 'event' ? each.event : each.type)
    expect(told).toContain('tool.settled/1')
    expect(told.at(-1)).toBe('result')

    const followed: string[] = []
    const follow = (async () => {
      for await (const wait of threads.waits({ follow: true })) followed.push(wait.thread.thread)
    })()
    const waited = await threads.run('worker', { thread: 'thread_ask', input: ASK })
    expect(waited.status).toBe('suspended')
    const asked = await threads.start({ agent: 'worker', thread: 'thread_confirm', input: CONFIRM })
    await until('both waits are told', () => followed.length === 2)
    expect(followed.sort()).toEqual(['thread_ask', 'thread_confirm'])

    expect((await threads.submit(said(waited.waits[0]!))).verdict).toBe('accepted')
    const wait = await until<Wait>('the approval', async () => {
      for await (const each of threads.waits({ thread: 'thread_confirm' })) return each
      return undefined
    })
    expect((await threads.approve(wait.id, { digest: wait.digest })).verdict).toBe('accepted')
    expect(await asked.result()).toMatchObject({ status: 'completed', output: 'done' })
    const events = await until('the engine resumes the run', async () => {
      const found = await eventsOf(log, threads.thread('thread_ask').stream)
      return found.at(-1)?.type === 'run.completed/1' && found
    })
    const owners = events.filter(({ type }) => type === 'run.started/1').map(({ data }) => data as { owner: { id: string } })
    expect(owners.map(({ owner }) => owner.id)).toEqual([log.owners.self, engine.backend.owners.self])
    await endsWithin(50_000, threads.close())
    await endsWithin(50_000, follow)
    await endsWithin(50_000, log.close())
  })

  test('several Threadlogs of one process serve one log: one member of the group, which leaves with the last of them', async () => {
    await using place = await kafkaPlace()
    const log = await place.open()
    const opened = await Promise.all(
      ['a', 'b'].map((application) =>
        openThreadlog({ log, application, agents: [workerAgent({ ledger: place.replica(application) })] }),
      ),
    )
    for (const threads of opened) await threads.serve({ sweepMs: 200 })
    expect([...(log.assignment?.share ?? [])]).toEqual([0, 1, 2, 3])
    for (const threads of opened) {
      const run = await threads.start({ agent: 'worker', thread: 'thread_t', input: NOTE })
      expect(await run.result()).toMatchObject({ status: 'completed' })
    }
    expect(effects(place.replica('a'))).toHaveLength(1)
    await endsWithin(50_000, opened[0]!.close())
    expect(log.assignment?.share?.size).toBe(4)
    await endsWithin(50_000, opened[1]!.close())
    expect(log.assignment?.share).toBeUndefined()
  })

  test('a process ends by itself once its Threadlog is closed, with an engine or without', async () => {
    await using place = await kafkaPlace()
    const { brokers, prefix } = place
    for (const serves of [false, true]) {
      await using child = await Child.start(NODE, { brokers, prefix, ledger: place.replica('ledger') })
      if (serves) await child.must('serve')
      expect(await child.must('run', { thread: `thread_${serves}`, input: NOTE })).toBe('completed')
      await endsWithin(50_000, child.must('close'))
      await endsWithin(50_000, child.end())
    }
  })
})

describeOwnKafka('an engine without its cluster', () => {
  test.each(['killed', 'frozen'] as const)('closes while the broker is %s', async (how) => {
    const broker = await ownBroker()
    try {
      await using place = await kafkaPlace({ brokers: [...broker.brokers] })
      const one = await node(place)
      const run = await one.threads.start({ agent: 'worker', thread: 'thread_t', input: NOTE })
      expect(await run.result()).toMatchObject({ status: 'completed' })
      if (how === 'killed') await broker.kill()
      else broker.freeze()
      // Something that cannot be written is under way.
      void one.threads.start({ agent: 'worker', thread: 'thread_u', input: NOTE }).catch(() => {})
      await delay(500)
      await endsWithin(50_000, one.close())
      if (how === 'frozen') broker.thaw()
      else return
      // What was acknowledged before is there, in a replica that is built anew.
      await using threads = await openThreadlog({ log: await place.open(), application: 'shop' })
      expect((await threads.thread('thread_t').state()).messageHistory.at(-1)?.kind).toBe('response')
    } finally {
      await broker.remove()
    }
  })
})
