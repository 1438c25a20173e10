import { setTimeout as delay } from 'node:timers/promises'
import { decodeReceipt, type Receipt } from '../../../src/continuations/index.ts'
import { type Engine, openThreadlog, type ServeOptions, type Threadlog, type Wait } from '../../../src/index.ts'
import { type LogBackend, type Positions, partitionOf } from '../../../src/log/index.ts'
import { HANG_MS } from '../../support/hang.ts'
import type { KafkaPlace } from '../../support/kafka/index.ts'
import { script, workerAgent } from '../../support/processes/worker.ts'

/** A node in this process: a replica of its own, and an engine on it. */
export interface Node extends AsyncDisposable {
  threads: Threadlog
  engine: Engine
  backend: LogBackend
  problems: string[]
  close(): Promise<void>
}

export async function node(place: KafkaPlace, change: (log: LogBackend) => LogBackend = (log) => log): Promise<Node> {
  const problems: string[] = []
  const backend = change(await place.open())
  const agents = [workerAgent({ ledger: `${place.folder}/ledger` })]
  const threads = await openThreadlog({ log: backend, application: 'shop', agents })
  const serve: ServeOptions = { sweepMs: 200, onProblem: ({ where, code }) => problems.push(`${where} ${code}`) }
  const engine = await threads.serve(serve)
  const close = async () => {
    await threads.close()
    await backend.close()
  }
  return { threads, engine, backend, problems, close, [Symbol.asyncDispose]: close }
}

/** Resolves with what `look` finds; fails when nothing more can be hoped for. */
export async function until<T>(what: string, look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  for (const deadline = performance.now() + HANG_MS; ; await delay(20)) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`still not: ${what}`)
  }
}

export const shareOf = ({ backend }: { backend: LogBackend }): number[] => [...(backend.assignment?.share ?? [])].sort()

/** Resolves when the nodes have all partitions between them, and each some. */
export const shared = (...nodes: { backend: LogBackend }[]): Promise<unknown> =>
  until('the nodes share the partitions', () => {
    const shares = nodes.map(shareOf)
    const all = shares.flat()
    return shares.every(({ length }) => length > 0) && new Set(all).size === 4 && all.length === 4
  })

/** Names that stand in these partitions: of threads, or, as keys of records, of whatever. */
export function named(count: number, partitions: readonly number[], of: (name: string) => string): string[] {
  const names: string[] = []
  for (let i = 0; names.length < count; i++)
    if (partitions.includes(partitionOf(of(`thread_n${i}`), 4))) names.push(`thread_n${i}`)
  return names
}

/** Opens a wait for provider `desk` on each thread. */
export async function waiting(threads: Threadlog, names: readonly string[]): Promise<Wait[]> {
  const input = script([{ id: 'a1', name: 'ask' }], 'done')
  await Promise.all(names.map((thread) => threads.start({ agent: 'worker', thread, input })))
  return Promise.all(
    names.map((thread) =>
      until(`a wait on ${thread}`, async () => {
        for await (const wait of threads.waits({ thread })) return wait
        return undefined
      }),
    ),
  )
}

export const said = (wait: Wait, what = 'yes') => ({ provider: 'desk', continuation_id: wait.id, result: { said: what } })

/** Appends records to topic `results`, each under its key. */
export const send = (log: LogBackend, records: readonly (readonly [key: string, value: object])[]): Promise<Positions> =>
  log.topics.publish(
    'results',
    records.map(([key, value]) => ({ key, value: new TextEncoder().encode(JSON.stringify(value)) })),
  )

export async function receipts(log: LogBackend): Promise<Receipt[]> {
  const found: Receipt[] = []
  for await (const batch of log.topics.scan('receipts')) found.push(...batch.map(({ value }) => decodeReceipt(value)))
  return found
}

/** The coordinate of a receipt's record. */
export const placeOf = ({ source }: Receipt): string =>
  'offset' in source ? `${source.topic}[${source.partition}]@${source.offset}` : 'api'

/** Resolves with the receipts once there are as many; then looks whether more come. */
export async function untilReceipts(log: LogBackend, n: number): Promise<Receipt[]> {
  await until(`${n} receipts`, async () => (await receipts(log)).length >= n)
  await delay(300)
  return receipts(log)
}
