import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openThreadlog, type RunHandle, type Threadlog } from '../../src/index.ts'
import { checkLog, checkReceipts, type DispatchedCall, dispatchedCalls } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { type Effect, effects, timesByKey } from '../support/processes/ledger.ts'
import { ordersAgent } from '../support/processes/orders.ts'
import { outsider, type Place, places, seeded } from '../support/processes/place.ts'
import { eventsOf, streamsOf } from '../support/processes/streams.ts'

const place = places()
const THREADS = 50
const KILLS = 12
/** Events that all orders take, roughly; kills are spread over most of them. */
const EVENTS = 26 * THREADS
const SEED = Number(process.env['THREADLOG_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test(`an engine killed ${KILLS} times during ${THREADS} threads loses nothing and repeats nothing (THREADLOG_SEED=${SEED})`, async () => {
  const { log, ...files } = place()
  await using threads = await openThreadlog({ log, application: 'shop', agents: [ordersAgent(files)] })
  const handles: RunHandle[] = []
  for (let i = 0; i < THREADS; i++)
    handles.push(await threads.start({ agent: 'orders', thread: `order_${i}`, input: `order-${i}`, commandId: `${i}` }))
  const world = new OutsideWorld(threads, files)
  const kills = await engineUnderFire(threads, files, Promise.all(handles.map((handle) => handle.result())))
  const results = await Promise.all(handles.map((handle) => handle.result()))
  await world.stop()
  expect(kills).toBe(KILLS)
  expect(results.map(({ status, output }) => ({ status, output }))).toEqual(
    handles.map((_, i) => ({ status: 'completed', output: `settled order-${i}` })),
  )

  const verdicts = [...checkReceipts(threads.backend).values()]
  expect(verdicts.filter((verdict) => verdict === 'accepted')).toHaveLength(THREADS)
  expect(verdicts.filter((verdict) => verdict === 'conflict')).toHaveLength(THREADS)
  const states = await checkLog(threads.store)
  expect(states).toHaveLength(THREADS)
  const calls: DispatchedCall[] = []
  for (const stream of streamsOf(threads.backend)) {
    const made = dispatchedCalls(await eventsOf(threads.backend, stream))
    expect(['look pay pay', 'look pay refund pay']).toContain(made.map((call) => call.tool).join(' '))
    calls.push(...made)
  }
  checkEffects(effects(files.ledger), calls)
}, 60_000)

/** What was done in the world against what the log says of it. */
function checkEffects(done: readonly Effect[], calls: readonly DispatchedCall[]): void {
  const times = timesByKey(done)
  const keys = new Set(calls.map((call) => call.key))
  for (const key of times.keys()) expect(keys.has(key)).toBe(true)
  expect(calls).toHaveLength(3 * THREADS + THREADS / 5)
  for (const { tool, key, dispatches, settlement, reason } of calls) {
    const n = times.get(key) ?? 0
    if (tool === 'look') {
      expect(settlement).toBe('returned')
      expect(n).toBeGreaterThanOrEqual(1)
      expect(n).toBeLessThanOrEqual(dispatches)
    } else if (settlement === 'returned') expect({ tool, n, dispatches }).toEqual({ tool, n: 1, dispatches: 1 })
    else {
      expect({ settlement, reason, dispatches }).toEqual({ settlement: 'unknown', reason: 'interrupted', dispatches: 1 })
      expect(n).toBeLessThanOrEqual(1)
    }
  }
  expect(calls.some(({ settlement }) => settlement === 'unknown')).toBe(true)
  // One key per call, whoever ran it and however often.
  const keysByCall = new Map<string, Set<string>>()
  for (const { tool, call, key } of done)
    keysByCall.set(`${tool} ${call}`, (keysByCall.get(`${tool} ${call}`) ?? new Set()).add(key))
  for (const [call, used] of keysByCall) expect(used.size).toBeLessThanOrEqual(call.startsWith('pay') ? 2 : 1)
}

/** Kills the engine as soon as the log has grown past each of the seeded counts, and starts the next one; the last is left to finish. */
async function engineUnderFire(threads: Threadlog, files: Omit<Place, 'log'>, done: Promise<unknown>): Promise<number> {
  const random = seeded(SEED)
  const before = await threads.backend.events.barrier()
  const thresholds = Array.from({ length: KILLS }, () => random() * EVENTS * 0.85).sort((a, b) => a - b)
  const stop = new AbortController()
  void done.finally(() => stop.abort())
  const begin = Number(before.get(0))
  const start = () => Child.start('engine.ts', { ...files, concurrency: 10, paceMs: 12, thinkMs: 1, sweepMs: 200 })
  let engine = await start()
  let next = thresholds.shift()
  let kills = 0
  for await (const records of threads.backend.events.follow({ from: before, signal: stop.signal })) {
    const grown = Number(records.at(-1)?.position.offset) - begin
    if (next === undefined || grown < next) continue
    await delay(random() * 10)
    await engine.kill()
    kills++
    engine = await start()
    next = thresholds.shift()
    if (next === undefined) break
  }
  await done
  expect(engine.exited).toBe(false)
  await engine.kill()
  return kills
}

/** The carrier, on the SQL views only: answers every request once, then again, then with something else. The shift lead approves by API. */
class OutsideWorld {
  readonly #stop = new AbortController()
  readonly #done: Promise<unknown>

  constructor(threads: Threadlog, { file }: { file: string }) {
    this.#done = Promise.all([this.#carrier(file), this.#lead(threads)])
  }

  async #carrier(file: string): Promise<void> {
    const database = outsider(file)
    const open = database.prepare(
      "SELECT offset, continuation_id, arguments FROM threadlog_requests WHERE offset > ? AND provider = 'carrier' ORDER BY offset",
    )
    const answer = database.prepare('INSERT INTO threadlog_results(value) VALUES (?)')
    try {
      for (let seen = 0; !this.#stop.signal.aborted; await delay(5)) {
        for (const row of open.all(seen) as { offset: number; continuation_id: string; arguments: string }[]) {
          seen = row.offset
          const result = (parcel: string) =>
            JSON.stringify({ provider: 'carrier', continuation_id: row.continuation_id, result: { parcel } })
          for (const parcel of ['P-1', 'P-1', 'P-2']) answer.run(result(parcel))
          answer.run('{"provider":')
        }
      }
    } finally {
      database.close()
    }
  }

  async #lead(threads: Threadlog): Promise<void> {
    for (let approved = 0; approved < THREADS / 5; )
      for await (const wait of threads.waits({ kind: 'approval', follow: true })) {
        const receipt = await threads.approve(wait.id, { digest: wait.digest, by: 'lead', commandId: wait.id })
        expect(receipt.verdict).toBe('accepted')
        if (++approved >= THREADS / 5) break
      }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#done
  }
}
