import { fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Border, FaultKind } from './border.ts'
import { emptyReport, inputOf, type Report } from './run.ts'

/** Beyond a border's own limit, before a process that does not answer is ended: the limit of a case is checked inside, if it can. */
const GRACE_MS = 20_000

interface Ended {
  report: Report
  /** The case during which the process ended or stood still; undefined when it came to its end. */
  broken?: { kind: FaultKind; what: string; case: number }
}

/** Runs a border in processes of their own until the time is up, a new one whenever one dies. */
export async function watch(border: Border, seed: string, ms: number): Promise<Report> {
  const total = emptyReport(border.name, seed)
  const until = performance.now() + ms
  let from = 0
  do {
    const { report, broken } = await once(border, seed, until - performance.now(), from)
    add(total, report)
    if (broken) {
      const known = total.found.find(({ what }) => what === broken.what)
      if (known) known.count++
      else
        total.found.push({
          ...broken,
          border: border.name,
          seed,
          more: '',
          count: 1,
          input: inputOf(border, seed, broken.case),
          alone: false,
        })
      from = broken.case + 1
    } else break
  } while (performance.now() < until)
  return total
}

async function once(border: Border, seed: string, ms: number, from: number): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), 'threadlog-fuzz-'))
  const progress = join(folder, 'progress')
  writeFileSync(progress, Buffer.alloc(8))
  const child = fork(new URL('./child.ts', import.meta.url), { cwd: folder, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  let report = emptyReport(border.name, seed)
  let done = false
  child.on('message', (message: { report: Report; done: boolean }) => {
    report = message.report
    done = message.done
  })
  const current = () => Number(readFileSync(progress).readBigUInt64LE())
  let hangs = false
  let [seen, since] = [-1, performance.now()]
  const look = setInterval(() => {
    const now = `${current()}/${report.cases}/${report.found.length}`
    if (now !== String(seen)) [seen, since] = [now as never, performance.now()]
    else if (performance.now() - since > border.limitMs + GRACE_MS) {
      hangs = true
      child.kill('SIGKILL')
    }
  }, 250)
  child.send({ border: border.name, seed, ms, from, progress })
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on('close', (...end) => resolve(end as [number | null, string | null])),
  )
  clearInterval(look)
  const last = current()
  rmSync(folder, { recursive: true, force: true })
  if (done) return { report }
  const what = hangs ? 'the process stands still' : `the process ended with ${signal ?? code}`
  return { report, broken: { kind: hangs ? 'hang' : 'crash', what, case: last } }
}

function add(total: Report, part: Report): void {
  total.cases += part.cases
  total.accepted += part.accepted
  total.ms += part.ms
  if (part.slowest.ms > total.slowest.ms) total.slowest = part.slowest
  for (const which of ['refused', 'taken'] as const)
    for (const [code, count] of Object.entries(part[which])) total[which][code] = (total[which][code] ?? 0) + count
  for (const found of part.found) {
    const known = total.found.find(({ kind, what }) => kind === found.kind && what === found.what)
    if (known) known.count += found.count
    else total.found.push(found)
  }
}
