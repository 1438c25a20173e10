import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { sha256Hex } from '../../../src/base/index.ts'
import type { Effect } from '../processes/ledger.ts'

/** The company whose jobs a tool begins by itself; tool and provider. */
export const FREIGHT = 'freight'
/** Milliseconds between the beginning of a job that is done at once and the answer to who began it. */
export const EARLY_MS = 400

const percent = (text: string): number => Number.parseInt(sha256Hex(text).slice(0, 8), 16) % 100

/** Of 100 jobs 2 are done before their wait is there. */
export const isEarly = (order: string, dense: boolean): boolean => percent(`early ${order}`) < (dense ? 60 : 2)

/**
 * The id of a job. Two threads that are neighbours come to the same path one turn apart; of 100 such meetings, in one both are given the same id, and
 * at most one of them can have it.
 */
export function jobId(order: string, key: string, dense: boolean): string {
  const [, thread = '', turn = ''] = order.split('-')
  const meeting = `${Math.floor(Number(thread) / 2)}-${Number(thread) + Number(turn)}`
  const isRace = !turn.startsWith('s') && percent(`race ${meeting}`) < (dense ? 40 : 1)
  return isRace ? `race-${meeting}` : `job-${key}`
}

/** True of a job whose id was given to another thread too. */
export const isWanted = ({ tool, call, key }: Effect, dense: boolean): boolean =>
  tool === FREIGHT && jobId(call.split('/')[0] ?? '', key, dense).startsWith('race-')

/** Follows the effects that are done in the world; tells each begun job. */
export async function followJobs(ledger: string, signal: AbortSignal, tell: (job: Effect) => void): Promise<void> {
  let file: FileHandle | undefined
  let [at, rest] = [0, '']
  const chunk = Buffer.alloc(65_536)
  try {
    while (!signal.aborted) {
      if (!file && existsSync(ledger)) file = await open(ledger)
      const { bytesRead = 0 } = (await file?.read(chunk, 0, chunk.length, at)) ?? {}
      at += bytesRead
      const lines = (rest + chunk.toString('utf8', 0, bytesRead)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const effect = JSON.parse(line) as Effect
        if (effect.tool === FREIGHT) tell(effect)
      }
      if (bytesRead === 0) await delay(20)
    }
  } finally {
    await file?.close()
  }
}
