import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog, type Threadlog } from '../../../src/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { describeKafka, type KafkaPlace, kafkaPlace } from '../../support/kafka/index.ts'
import { checkLog, dispatchedCalls } from '../../support/processes/checks.ts'
import { Child } from '../../support/processes/child.ts'
import { effects, timesByKey } from '../../support/processes/ledger.ts'
import { eventsOf } from '../../support/processes/streams.ts'
import { gateOf, script, workerAgent } from '../../support/processes/worker.ts'
import { named, said, send, until, waiting } from './intake-nodes.ts'

const ALL = [0, 1, 2, 3]
const NOTE = script([{ id: 'c1', name: 'note' }], 'done')

/** Processes on one log, and this one beside them, which serves nothing. */
class Cluster implements AsyncDisposable {
  readonly place: KafkaPlace
  readonly log: LogBackend
  readonly threads: Threadlog
  readonly #children: Child[] = []

  private constructor(place: KafkaPlace, log: LogBackend, threads: Threadlog) {
    this.place = place
    this.log = log
    this.threads = threads
  }

  static async open(): Promise<Cluster> {
    const place = await kafkaPlace()
    const log = await place.open()
    const agents = [workerAgent({ ledger: `${place.folder}/ledger` })]
    return new Cluster(place, log, await openThreadlog({ log, application: 'shop', agents }))
  }

  get ledger(): string {
    return `${this.place.folder}/ledger`
  }

  done = (tool: string) => effects(this.ledger).filter((each) => each.tool === tool)
  stream = (name: string): string => this.threads.thread(name).stream
  events = (name: string) => eventsOf(this.log, this.stream(name))

  async node(): Promise<Child> {
    const { brokers, prefix } = this.place
    const o = { brokers, prefix, ledger: this.ledger, stalls: true }
    const child = await Child.start('../../engine/kafka/ownership-node.ts', o)
    this.#children.push(child)
    return child
  }

  async engine(): Promise<Child> {
    const child = await this.node()
    await child.must('serve')
    return child
  }

  start = (thread: string, input: string) => this.threads.start({ agent: 'worker', thread, input })

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()))
    await this.threads.close()
    await this.place.remove()
  }
}

const share = (child: Child): Promise<number[]> => child.must<number[]>('share')
const has = (child: Child, count: number) => until(`${count} partitions`, async () => (await share(child)).length === count)

describeKafka('ownership on Kafka', () => {
  test('a killed engine is replaced: its runs recovered, its waits answered, its requests begun, no effect doubled', async () => {
    await using cluster = await Cluster.open()
    const { threads } = cluster
    const [one, two] = [await cluster.engine(), await cluster.engine()]
    await has(one, 2)
    await has(two, 2)
    const lost = await share(one)
    const names = named(9, lost, cluster.stream)
    const [running, asking, requested] = [names.slice(0, 3), names.slice(3, 6), names.slice(6)]
    const calls = [
      { id: 'c1', name: 'gate' },
      { id: 'c2', name: 'gate_again' },
    ]
    for (const name of running) await cluster.start(name, script(calls, 'done'))
    const waits = await waiting(threads, asking)
    await until('both calls of each are begun', () => cluster.done('gate').length + cluster.done('gate_again').length === 6)

    await one.kill()
    writeFileSync(gateOf(cluster.ledger, two.pid), '')
    const runs = await Promise.all(requested.map((name) => cluster.start(name, NOTE)))
    await send(
      cluster.log,
      waits.map((wait, i) => [`k${i}`, said(wait)] as const),
    )
    for (const run of runs) expect(await run.result()).toMatchObject({ status: 'completed' })
    const finished = async (name: string) => (await cluster.events(name)).at(-1)?.type === 'run.completed/1'
    for (const name of [...running, ...asking]) await until(`${name} is done`, () => finished(name))

    for (const name of running) {
      const events = await cluster.events(name)
      const recovered = events.filter(({ type }) => type === 'run.recovered/1')
      expect(recovered.map(({ data }) => data)).toMatchObject([{ attempt: 2 }])
      expect(dispatchedCalls(events)).toMatchObject([
        { tool: 'gate', settlement: 'unknown', reason: 'interrupted', dispatches: 1 },
        { tool: 'gate_again', settlement: 'returned', dispatches: 2 },
      ])
    }
    expect([...timesByKey(cluster.done('gate')).values()]).toEqual([1, 1, 1])
    expect([...timesByKey(cluster.done('note')).values()]).toEqual([1, 1, 1])
    expect((await share(two)).sort()).toEqual(ALL)
    await checkLog(threads.store)
  }, 120_000)

  test('row 67: a frozen engine that wakes after its partitions went to another commits nothing, starts no effect and stops', async () => {
    await using cluster = await Cluster.open()
    const { threads, log } = cluster
    const [zombie, other] = [await cluster.engine(), await cluster.engine()]
    await has(zombie, 2)
    await has(other, 2)
    const mine = await share(zombie)
    const names = named(4, mine, cluster.stream)
    const calls = [
      { id: 'c1', name: 'gate' },
      { id: 'c2', name: 'gate_again' },
    ]
    // After the gate opens, another effect would follow at once.
    const input = script(calls, [{ id: 'c3', name: 'note' }], 'done')
    const runs = [await cluster.start(names[0]!, input), await cluster.start(names[1]!, input)]
    await until('the calls are begun', () => cluster.done('gate_again').length === 2 && cluster.done('gate').length === 2)
    const owner = await zombie.must<string>('owner')
    process.kill(zombie.pid, 'SIGSTOP')
    // Asked for while it is frozen, and opened for it: it would do all that at the moment it wakes.
    const late = await cluster.start(names[2]!, NOTE)
    writeFileSync(gateOf(cluster.ledger, zombie.pid), '')
    writeFileSync(gateOf(cluster.ledger, other.pid), '')
    for (const run of [...runs, late]) expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
    await has(other, 4)

    const accepted = async () => {
      await log.events.barrier()
      return log.tables.all('SELECT stream, count(*) AS events, max(version) AS version FROM events GROUP BY stream')
    }
    const before = await accepted()
    const done = effects(cluster.ledger).length
    process.kill(zombie.pid, 'SIGCONT')
    await zombie.must('asked')
    await delay(3_000)
    // What it sent before it had read on is void.
    expect(await accepted()).toEqual(before)
    expect(effects(cluster.ledger)).toHaveLength(done)
    expect(effects(cluster.ledger).filter(({ pid, tool }) => pid === zombie.pid && tool === 'note')).toEqual([])
    for (const name of names.slice(0, 2)) {
      const events = await cluster.events(name)
      const at = events.findIndex(({ type }) => type === 'run.recovered/1')
      expect(at).toBeGreaterThan(0)
      expect(events.slice(at).filter(({ actor }) => actor.id === owner)).toEqual([])
      expect(dispatchedCalls(events)).toMatchObject([
        { tool: 'gate', settlement: 'unknown', dispatches: 1 },
        { tool: 'gate_again', settlement: 'returned', dispatches: 2 },
        { tool: 'note', settlement: 'returned', dispatches: 1 },
      ])
    }
    expect([...timesByKey(cluster.done('gate')).values()]).toEqual([1, 1])
    expect([...timesByKey(cluster.done('note')).values()]).toEqual([1, 1, 1])
    // It takes part again like any other.
    await has(zombie, 2)
    const again = named(5, await share(zombie), cluster.stream).find((name) => !names.slice(0, 3).includes(name))
    expect(await (await cluster.start(again!, NOTE)).result()).toMatchObject({ status: 'completed' })
    expect(await zombie.must('problems')).toEqual([])
    await checkLog(threads.store)
  }, 120_000)

  test('an engine that joins takes over what stands in its partitions, also from the living, and nothing is done twice', async () => {
    await using cluster = await Cluster.open()
    const one = await cluster.engine()
    const names = named(8, ALL, cluster.stream)
    const input = script([{ id: 'c1', name: 'gate' }], [{ id: 'c2', name: 'note' }], 'done')
    const runs = await Promise.all(names.map((name) => cluster.start(name, input)))
    await until('all are begun', () => cluster.done('gate').length === 8)
    const two = await cluster.engine()
    await has(two, 2)
    await has(one, 2)
    const kept = await share(one)
    writeFileSync(gateOf(cluster.ledger, two.pid), '')
    writeFileSync(gateOf(cluster.ledger, one.pid), '')
    for (const run of runs) expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
    for (const name of names) {
      const events = await cluster.events(name)
      const isKept = kept.includes(cluster.log.events.partitionOf(cluster.stream(name)))
      expect(events.filter(({ type }) => type === 'run.recovered/1')).toHaveLength(isKept ? 0 : 1)
    }
    expect([...timesByKey(cluster.done('gate')).values()]).toEqual(names.map(() => 1))
    expect([...timesByKey(cluster.done('note')).values()]).toEqual(names.map(() => 1))
    await checkLog(cluster.threads.store)
  }, 120_000)
})
