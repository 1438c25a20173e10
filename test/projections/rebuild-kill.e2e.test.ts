import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openSqliteLog } from '../../src/log/index.ts'
import { grow, newStream } from '../../src/testing/log-conformance/writing.ts'
import { outsider, places, seeded } from '../support/processes/place.ts'

const place = places()
const SLICE = 500

// Row 114: the restore position was saved every thousand records of one kind, so a dirty stop repeated the whole restore, again and again.
// Row 121: rows and their position were written by two mechanisms; after kill -9 they disagreed, and everything was thrown away.
// Here position, rows and what was published are one transaction: a killed rebuild goes on at its position, whenever it was killed.
test('rows 114 and 121: a rebuild that is killed over and over goes on where it was, with rows and position in agreement', async () => {
  const { file, ledger: notes } = place()
  const random = seeded(114)
  const log = await openSqliteLog({ file })
  const streams = [newStream(), newStream(), newStream()]
  for (let i = 0; i < 2; i++) for (const stream of streams) await grow(log.events, stream, 1, SLICE)
  await log.close()

  const lines = () => (existsSync(notes) ? readFileSync(notes, 'utf8').trimEnd().split('\n') : [])
  let position = 1
  let kills = 0
  for (let round = 0; round < 40; round++) {
    const before = lines().length
    const child = fork(new URL('../support/processes/rebuilder.ts', import.meta.url), [JSON.stringify({ file, notes, ms: 2 })], {
      execArgv: [],
    })
    const exited = once(child, 'exit')
    const wanted = before + 1 + Math.floor(random() * 2)
    while (lines().length < wanted && child.exitCode === null) await delay(1)
    await delay(random() * 15)
    const killed = child.kill('SIGKILL')
    await exited
    const own = lines()
      .slice(before)
      .filter((line) => !line.endsWith('done'))
    if (own.length > 0) expect(Number(own[0]!.split(' ')[1]), 'it goes on at its position').toBe(position)

    const outside = outsider(file)
    const value = (sql: string) => Number(Object.values(outside.prepare(sql).get() ?? {})[0] ?? 0)
    const end = value('SELECT max(id) + 1 FROM events')
    const row = outside.prepare("SELECT next FROM projectors WHERE name = 'copied'").get() as { next: number | null } | undefined
    const next = row === undefined ? 1 : (row.next ?? end)
    const table = row !== undefined
    expect(next).toBeGreaterThanOrEqual(position)
    if (table) {
      expect(value('SELECT count(*) FROM copied')).toBe(next - 1)
      expect(value('SELECT max(id) FROM copied')).toBe(next - 1)
      expect(value('SELECT count(*) FROM copied JOIN events USING (id, version)')).toBe(next - 1)
    }
    expect(value('SELECT count(DISTINCT CAST(value AS TEXT)) FROM checkpoints')).toBe(next - 1)
    expect(value('SELECT count(*) FROM checkpoints')).toBe(next - 1)
    outside.close()
    // What was given and not committed is all that is given again.
    for (const line of own.slice(0, -1)) expect(Number(line.split(' ')[2])).toBeLessThan(next)
    expect(Number(own.at(-1)?.split(' ')[2] ?? 0) - next).toBeLessThan(SLICE)
    position = next
    if (lines().at(-1)?.endsWith('done') && next === end) break
    if (killed) kills++
    // Meanwhile a process without the projector appends: one more commit behind.
    if (round === 2) {
      const writer = await openSqliteLog({ file })
      await grow(writer.events, streams[0]!, 1, 10)
      await writer.close()
    }
  }
  expect(kills).toBeGreaterThan(2)
  expect(position).toBe(streams.length * 2 * SLICE + 11)
})
