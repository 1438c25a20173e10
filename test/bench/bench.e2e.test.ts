import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'threadlog-bench-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Line {
  bench: string
  log: string
  threads: number
  in_flight: number | null
  per_second: number | null
  p50_ms: number | null
  p99_ms: number | null
  rows_per_second: number | null
  floor_per_second: number | null
  efficiency: number | null
  settings: Record<string, unknown>
  round: number | 'median'
  details: Record<string, number>
}

/** Runs the benchmarks as a user does and reads what they print. */
async function bench(...args: string[]): Promise<Line[]> {
  const child = spawn(process.execPath, ['bench/main.ts', '--json', ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let errors = ''
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (errors += chunk))
  const code = await new Promise((resolve) => child.on('close', resolve))
  expect({ code, errors }).toEqual({ code: 0, errors: '' })
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

const FIELDS = [
  ...['bench', 'log', 'threads', 'in_flight', 'per_second', 'p50_ms', 'p99_ms', 'rows_per_second', 'floor_per_second'],
  ...['efficiency', 'settings', 'round', 'details'],
]
const file = () => ['--log', `sqlite:${join(folder, 'bench.db')}`]

test('each bench prints its lines with every field, settings included, and leaves no files', async () => {
  const sizes = ['--threads', '8', '--in-flight', '1,4', '--events', '60', '--waits', '5', '--listed', '230', '--lengths', '40']
  const lines = await bench('append', 'cycle', 'resume', 'fold', 'recovery', 'length', 'listing', ...sizes, ...file())

  const measured = lines.map(({ bench, in_flight }) => `${bench} ${in_flight}`)
  expect(measured).toEqual([
    ...['append 1', 'append 4', 'cycle 1', 'cycle 4', 'resume 1', 'resume 4'],
    ...['fold null', 'recovery null', 'recovery-results null', 'length 1', 'listing 1'],
  ])
  for (const line of lines) {
    expect(Object.keys(line)).toEqual(FIELDS)
    expect(line).toMatchObject({ log: 'sqlite', round: 1, settings: { synchronous: 'FULL', journal_mode: 'WAL' } })
    expect(line.settings).toMatchObject({ node: process.versions.node, message_bytes: 2000, cpus: expect.any(Number) })
  }
  expect(lines.at(-1)?.details).toMatchObject({ waits: 250, by_id_first_ms: expect.any(Number), count_ms: expect.any(Number) })
  expect(readdirSync(folder)).toEqual([])
})

test('resume and cycle are set against the floor of the same round, with the rows they really wrote', async () => {
  const lines = await bench('resume', 'cycle', '--threads', '6', '--in-flight', '3', '--rounds', '2', ...file())
  const of = (name: string, round: Line['round']) => lines.find((line) => line.bench === name && line.round === round) as Line
  for (const round of [1, 2]) {
    const floor = of('append', round).per_second as number
    for (const name of ['resume', 'cycle']) {
      const line = of(name, round)
      expect(line.floor_per_second).toBe(floor)
      expect(line.efficiency).toBeCloseTo(((line.per_second as number) * 10) / floor, 3)
      expect(line.rows_per_second).toBeCloseTo((line.per_second as number) * (line.details['rows'] as number), -1)
      expect(line.details).toMatchObject({ row_bytes: expect.any(Number), row_changes: expect.any(Number) })
    }
    // Result, resume, response, end; receipt and checkpoint.
    expect(of('resume', round).details['rows']).toBeGreaterThanOrEqual(8)
    expect(of('cycle', round).details['rows']).toBeGreaterThan(of('resume', round).details['rows'] as number)
  }
  expect(of('resume', 'median')).toMatchObject({ threads: 6, in_flight: 3, per_second: expect.any(Number) })
})

test('a log in memory is measured too, but not killed', async () => {
  const lines = await bench('resume', 'recovery', '--log', 'memory', '--threads', '4', '--in-flight', '2')
  expect(lines.map((line) => [line.bench, line.log, line.settings['synchronous']])).toEqual([
    ['append', 'memory', 'none'],
    ['resume', 'memory', 'none'],
  ])
})
