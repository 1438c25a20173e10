// One engine on a log, with an HTTP intake; what it does is told over the IPC channel.
//   node bench/engine-process.ts <log> [profile]
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { openThreadlog, type RunHandle } from '../src/index.ts'
import type { TopicName } from '../src/log/index.ts'
import { openKafkaLog } from '../src/log/kafka/index.ts'
import type { FromEngine, Marks, ToEngine } from './engine-messages.ts'
import { kafkaOptions } from './kafka/address.ts'
import { nameStatements } from './profile/statements.ts'
import { now, pool } from './statistics.ts'
import { AGENT, inputOf, threadOf, workAgent } from './workload.ts'

const [log = 'memory', mode] = process.argv.slice(2)
if (mode === 'profile') nameStatements()

/** Runs driven at once: enough for 64 in flight while as many others finish. */
const CONCURRENCY = 256

let outbox: FromEngine = {}
function tell(kind: 'asked' | 'ended', order: number): void {
  later()[kind] = [...(outbox[kind] ?? []), [order, now()]]
}
function later(): FromEngine {
  if (Object.keys(outbox).length === 0)
    setImmediate(() => {
      process.send?.(outbox)
      outbox = {}
    })
  return outbox
}

const agent = workAgent((order) => tell('asked', order))
const kafka = kafkaOptions(log)
const onTrouble = (error: unknown) => process.send?.({ problem: `log: ${(error as { code?: string }).code} ${error}` })
const opened = kafka ? await openKafkaLog({ ...kafka, onTrouble }) : (log as 'memory')
const threads = await openThreadlog({ log: opened, application: 'bench', agents: [agent] })
const { tables, topics } = threads.backend
const engine = await threads.serve({
  concurrency: CONCURRENCY,
  http: { token: 'bench' },
  onProblem: ({ where, code, message }) => process.send?.({ problem: `${where}: ${code} ${message}` }),
})

async function start(order: number): Promise<void> {
  const handle: RunHandle = await threads.start({ agent: AGENT, thread: threadOf(order), input: inputOf(order) })
  void handle.result().then(
    () => tell('ended', order),
    () => {},
  )
}

async function announceRequests(): Promise<void> {
  const seen = await topics.progress('requests', 'bench')
  for await (const batch of topics.subscribe('requests', { group: 'bench', from: seen }))
    process.send?.({
      requests: batch.map(({ value }) => {
        const request = JSON.parse(Buffer.from(value).toString()) as { arguments: { order: number }; continuation_id: string }
        return [request.arguments.order, request.continuation_id]
      }),
    } satisfies FromEngine)
}

const TOPICS = ['requests', 'results', 'receipts', 'checkpoints'] as const
/** Of a topic on Kafka: all of it is read. */
async function counted(name: TopicName): Promise<{ rows: number; bytes: number }> {
  const size = { rows: 0, bytes: 0 }
  for await (const batch of topics.scan(name))
    for (const { key, value, headers = {} } of batch) {
      size.rows++
      size.bytes += key.length + value.length + Object.entries(headers).join().length
    }
  return size
}

/** Every result has its receipt, and nothing is left to publish: runs are idle before that. */
async function published(): Promise<void> {
  const begun = cpu()
  const receipts = async () => (await counted('receipts')).rows
  const results = (await counted('results')).rows
  while ((await receipts()) < results) await new Promise((resolve) => setTimeout(resolve, 50))
  marking += cpu() - begun
  await new Promise((resolve) => setTimeout(resolve, 300))
}

/** CPU that went into taking marks, in microseconds: on Kafka whole topics are read for them. */
let marking = 0
const cpu = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function marks(): Promise<Marks> {
  const size = (sql: string) => tables.get<{ rows: number; bytes: number }>(sql) ?? { rows: 0, bytes: 0 }
  const of = (table: string, bytes: string) => size(`SELECT count(*) AS rows, ifnull(sum(${bytes}), 0) AS bytes FROM ${table}`)
  const onTable = (name: string) => of(name, 'length(key) + length(value) + ifnull(length(headers), 0)')
  if (kafka) await published()
  const begun = cpu()
  const sizes = await Promise.all(TOPICS.map(async (name) => [name, kafka ? await counted(name) : onTable(name)] as const))
  const { changes } = tables.get<{ changes: number }>('SELECT total_changes() AS changes') ?? { changes: 0 }
  const used = begun - marking
  marking += cpu() - begun
  return {
    tables: { events: of('events', 'length(value)'), ...Object.fromEntries(sizes) },
    changes,
    cpu: used,
  }
}

async function idle(): Promise<void> {
  const busy = "SELECT count(*) AS n FROM threads WHERE status NOT IN ('idle', 'waiting')"
  while (tables.get<{ n: number }>(busy)?.n !== 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

const session = new Session()
async function profile(file?: string): Promise<void> {
  if (file === undefined) {
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: 200 })
    await session.post('Profiler.start')
    return
  }
  const stopped = await session.post('Profiler.stop')
  writeFileSync(file, JSON.stringify(stopped.profile))
}

async function answer(message: Exclude<ToEngine, { start: number[] }>): Promise<unknown> {
  if (message.ask === 'marks') return marks()
  if (message.ask === 'idle') return idle()
  if (message.ask === 'stop-serving') return engine.close()
  if (message.ask === 'publish') {
    const records = message.results.map((value) => ({ key: '', value: Buffer.from(value) }))
    await topics.publish('results', records)
    return undefined
  }
  return profile(message.ask === 'profile-end' ? message.file : undefined)
}

process.on('message', async (message: ToEngine) => {
  if ('start' in message) await pool(message.start.length, 64, (i) => start(message.start[i] as number))
  else process.send?.({ reply: { id: message.id, value: await answer(message) } })
})
process.on('disconnect', () => process.exit())
void announceRequests()
process.send?.({ ready: { url: `${engine.http?.url}/results`, token: 'bench', at: now() } } satisfies FromEngine)
