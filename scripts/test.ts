// Runs the tests once and closes with one line of counts.
//   npm test [-- <vitest arguments>]
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { countLine, type VitestReport } from './test-counts.ts'

const root = dirname(import.meta.dirname)
const place = mkdtempSync(join(tmpdir(), 'threadlog-tests-'))
const file = join(place, 'report.json')

const vitest = spawn(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${file}`,
    ...process.argv.slice(2),
  ],
  { cwd: root, stdio: 'inherit' },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => vitest.kill(signal))
const code = await new Promise<number>((resolve, reject) => {
  vitest.on('error', reject)
  vitest.on('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]))
})

const report = read()
rmSync(place, { recursive: true, force: true })
process.exitCode = code
if (report) console.log(countLine(report, code))
else if (code === 0) process.exitCode = 1
if (!report) console.error('vitest wrote no report')

function read(): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return undefined
  }
}
