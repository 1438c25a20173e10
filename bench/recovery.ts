import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { EngineProcess } from './engine-client.ts'
import { send } from './http-client.ts'
import type { Logs } from './logs.ts'
import type { Measured } from './resume.ts'
import { now } from './statistics.ts'
import { resultRecord } from './threadlog-system.ts'

/**
 * An engine with that many waiting threads is killed with SIGKILL, a new process started; times are from that start on.
 * `recovery`: until it serves, knows every wait and has answered one result with a receipt.
 * `recovery-results`: the results of all threads lay in the log when it was killed; until the last of them has resumed its run.
 */
export async function measureRecovery(logs: Logs, waits: number): Promise<Record<string, Measured>> {
  return {
    recovery: await untilReady(await logs.next(), waits),
    'recovery-results': await untilResumed(await logs.next(), waits),
  }
}

async function untilReady(log: string, waits: number): Promise<Measured> {
  const killed = await killedEngine(log, waits, false)
  const { begun, child } = start(log)
  try {
    const found = await foundBy(child)
    if (found.waits !== waits) throw new Error(`Recovery knows ${found.waits} of ${waits} waits.`)
    const order = [...killed].find(([, id]) => id === found.some)?.[0] ?? -1
    const { status, body } = await send('POST', found.url, resultRecord(order, found.some ?? ''), {
      authorization: 'Bearer bench',
    })
    if (status !== 200) throw new Error(`The first result was refused: ${status} ${body}`)
    const receipt = now() - begun
    const details = { open_ms: found.opened - begun, serving_ms: found.serving - begun, receipt_ms: receipt }
    return { per_second: null, p50_ms: found.known - begun, p99_ms: null, rows_per_second: null, details }
  } finally {
    await kill(child)
  }
}

async function untilResumed(log: string, waits: number): Promise<Measured> {
  await killedEngine(log, waits, true)
  const { begun, child } = start(log, 'results')
  try {
    await foundBy(child)
    const { first, last } = await allResumed(child, waits)
    const details = { first_ms: first - begun }
    const per_second = waits / ((last - begun) / 1e3)
    return { per_second, p50_ms: last - begun, p99_ms: null, rows_per_second: null, details }
  } finally {
    await kill(child)
  }
}

/** Lets threads come to wait and kills their engine; with `results`, after all results were written to the log and none was read. */
async function killedEngine(log: string, waits: number, results: boolean): Promise<Map<number, string>> {
  const engine = new EngineProcess(log)
  await engine.open(waits)
  if (results) {
    await engine.ask({ ask: 'stop-serving' })
    const records = [...engine.waits].map(([order, id]) => resultRecord(order, id))
    for (let i = 0; i < records.length; i += 500) await engine.ask({ ask: 'publish', results: records.slice(i, i + 500) })
  }
  await engine.kill()
  return engine.waits
}

function start(log: string, ...mode: string[]): { begun: number; child: ChildProcess } {
  const begun = now()
  return { begun, child: fork(join(import.meta.dirname, 'recovery-process.ts'), [log, ...mode]) }
}

interface Found {
  opened: number
  serving: number
  known: number
  waits: number
  /** One of the waits. */
  some?: string
  url: string
}

async function foundBy(child: ChildProcess): Promise<Found> {
  const [found] = await once(child, 'message', { signal: AbortSignal.timeout(300_000) })
  return found as Found
}

async function allResumed(child: ChildProcess, waits: number): Promise<{ first: number; last: number }> {
  for (;;) {
    child.send('how many?')
    const [{ resumed }] = await once(child, 'message')
    if (resumed.count === waits) return resumed
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
