import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MAIN = new URL('../../../src/cli/main.ts', import.meta.url).pathname

/** An agent module for `run` and `engine`. */
export const AGENTS = new URL('./agents.ts', import.meta.url).pathname

export interface Ran {
  code: number | null
  out: string
  err: string
}

export interface CliOptions {
  /** Path of the log file, or a whole address. */
  log?: string
  input?: string
  cwd?: string
  env?: Record<string, string>
}

/** Starts the command as a process of its own, without colour variables and configuration of whoever runs the tests. */
export function start(args: readonly string[], { log, cwd, env }: CliOptions = {}): ChildProcess {
  const inherited = { ...process.env }
  for (const name of ['NO_COLOR', 'FORCE_COLOR', 'THREADLOG_LOG', 'NODE_OPTIONS']) delete inherited[name]
  const place = log === undefined ? {} : { THREADLOG_LOG: log.includes(':') ? log : `sqlite:${log}` }
  return spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: { ...inherited, NODE_COMPILE_CACHE: join(tmpdir(), 'threadlog-test-compile-cache'), ...place, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
}

/** Runs the command to its end. */
export async function cli(args: readonly string[], o: CliOptions = {}): Promise<Ran> {
  const child = start(args, o)
  const ran = collected(child)
  child.stdin?.on('error', () => {})
  child.stdin?.end(o.input ?? '')
  return ran
}

/** What a process writes, and how it ends. */
export async function collected(child: ChildProcess): Promise<Ran> {
  let [out, err] = ['', '']
  child.stdout?.on('data', (data) => {
    out += data
  })
  child.stderr?.on('data', (data) => {
    err += data
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err }
}

/** Resolves with the first line of a stream that matches; rejects when the process ends before. */
export function says(child: ChildProcess, stream: 'stdout' | 'stderr', pattern: RegExp): Promise<string> {
  let text = ''
  return new Promise((resolve, reject) => {
    child[stream]?.on('data', (data) => {
      text += data
      const line = text.split('\n').find((candidate) => pattern.test(candidate))
      if (line !== undefined) resolve(line)
    })
    child.on('close', (code) => reject(new Error(`ended with ${code} before ${pattern}: ${text}`)))
  })
}

/** Output without what differs from run to run: ids, hashes, times. */
export const normalised = (text: string): string =>
  text
    .replace(/\brun-[0-9a-f]{32}\b/g, '<run>')
    .replace(/\brun-[0-9a-f]{8}\b/g, '<run>')
    .replace(/\b[0-9a-f]{64}\b/g, '<hash>')
    .replace(/\b[0-9a-f]{32}\b/g, '<id>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
    .replace(/"(record_time|took_ms|deadline|time)": ?\d+/g, '"$1": 0')

/** A JSON document with ids, hashes and times normalised; wait ids by name. */
export function document(text: string, waits: Record<string, string> = {}): unknown {
  let named = text
  for (const [name, id] of Object.entries(waits))
    named = named.replaceAll(id, `<wait ${name}>`).replaceAll(id.slice(0, 12), `<wait ${name}>`)
  return JSON.parse(normalised(named))
}

/** The records of a JSON lines output. */
export const records = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
