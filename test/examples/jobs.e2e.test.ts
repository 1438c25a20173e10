import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { Child } from '../../examples/support/child.ts'
import { openThreadlog } from '../../src/index.ts'
import { places } from '../support/processes/place.ts'

const place = places()
const script = (name: string) => fileURLToPath(new URL(`../../examples/jobs/${name}.ts`, import.meta.url))
const children: Child[] = []
afterEach(async () => {
  for (const child of children.splice(0)) await child.kill()
})

function start(name: string, ...args: string[]): Child {
  const child = new Child(name, process.execPath, [script(name), ...args])
  children.push(child)
  return child
}

async function service(file: string, port = '0', takes = '600') {
  const child = start('service', file, port, takes)
  const { port: given } = await child.says<{ event: string; port: number }>('listening')
  return { child, port: String(given), url: `http://127.0.0.1:${given}` }
}

test('jobs are submitted once and their waits completed, though engine, monitor and service are killed', async () => {
  const { file, ledger: jobs } = place()
  const log = `sqlite:${file}` as const
  let { child: jobService, port, url } = await service(jobs)
  const engine = () => start('engine', log, url, '200')
  let serving = engine()
  await using threads = await openThreadlog({ log, application: 'studio' })
  const names = Array.from({ length: 24 }, (_, i) => `video_${i}`)
  const asked = (i: number) => (i % 8 === 7 ? 'hologram' : 'render')
  const runs = await Promise.all(
    names.map((thread, i) => threads.start({ agent: 'director', thread, input: `${asked(i)} ${i + 1}` })),
  )

  // In mid-submission, then while jobs are watched; the service is away for a while.
  await serving.says('watching')
  await serving.kill()
  serving = engine()
  await serving.says('watching')
  await jobService.kill()
  await serving.kill()
  serving = engine()
  await serving.says('serving')
  jobService = (await service(jobs, port)).child

  const results = await Promise.all(runs.map((run) => run.result()))
  for (const [i, { status, output }] of results.entries())
    expect([status, output]).toEqual([
      'completed',
      expect.stringContaining(asked(i) === 'render' ? `"frames":${(i + 1) * 24}` : 'unknown_kind'),
    ])
  expect(await threads.waitCounts()).toEqual([])
  const db = new DatabaseSync(jobs, { readOnly: true })
  expect(db.prepare('SELECT count(*) AS jobs, count(DISTINCT key) AS keys FROM jobs').get()).toEqual({
    jobs: names.length,
    keys: names.length,
  })
  db.close()
})

test('a wait that is cancelled is no longer watched, and what its job comes to is for nobody', async () => {
  const { file, ledger: jobs } = place()
  const log = `sqlite:${file}` as const
  const { url } = await service(jobs, '0', '100000')
  const serving = start('engine', log, url, '100')
  await using threads = await openThreadlog({ log, application: 'studio' })
  const run = await threads.start({ agent: 'director', thread: 'video_1', input: 'render 9' })
  const { wait } = await serving.says<{ event: string; wait: string }>('watching')
  await threads.thread('video_1').cancel()
  await serving.says('over', (line) => line['wait'] === wait)
  expect((await run.result()).status).toBe('cancelled')
})
