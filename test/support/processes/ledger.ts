import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'

/** One effect that was done, and by whom. */
export interface Effect {
  tool: string
  call: string
  key: string
  pid: number
}

/** Does an effect on the outside world: one line, on the disk when this returns. */
export function effect(file: string, done: Omit<Effect, 'pid'>): void {
  const handle = openSync(file, 'a')
  try {
    writeSync(handle, `${JSON.stringify({ ...done, pid: process.pid })}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

export function effects(file: string): Effect[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Effect)
}

/** How often each key was used. */
export function timesByKey(done: readonly Effect[]): Map<string, number> {
  const times = new Map<string, number>()
  for (const { key } of done) times.set(key, (times.get(key) ?? 0) + 1)
  return times
}
