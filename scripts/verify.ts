// Everything a change must pass, in order; stops at the first failure.
//   npm run verify [-- --all] [-- --only types,layers] [-- --except tests]
//   --all goes on after a failure; --only and --except take step names
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'

const root = dirname(import.meta.dirname)
const bin = (path: string) => join(root, 'node_modules', path)
const script = (name: string, ...args: string[]) => [join(root, 'scripts', name), ...args]

/** Arguments for this Node, by step. */
const STEPS: Record<string, readonly string[]> = {
  format: [bin('@biomejs/biome/bin/biome'), 'ci', '--linter-enabled=false', '--colors=off'],
  lint: [bin('@biomejs/biome/bin/biome'), 'lint', '--error-on-warnings', '--colors=off'],
  types: [bin('typescript/bin/tsc'), '--noEmit', '-p', root],
  layers: script('layers.ts'),
  schemas: script('schemas.ts', '--check'),
  asyncapi: script('asyncapi.ts', '--check'),
  tests: script('test.ts'),
  build: script('build.ts'),
  pack: script('pack-check.ts'),
}

const { values } = parseArgs({ options: { all: { type: 'boolean' }, only: { type: 'string' }, except: { type: 'string' } } })
const names = (list: string | undefined) => list?.split(',').map((name) => name.trim())
for (const name of [...(names(values.only) ?? []), ...(names(values.except) ?? [])])
  if (!(name in STEPS)) {
    console.error(`no step ${name}; there are ${Object.keys(STEPS).join(', ')}`)
    process.exit(2)
  }

const chosen = Object.entries(STEPS).filter(
  ([name]) => (names(values.only)?.includes(name) ?? true) && !names(values.except)?.includes(name),
)
for (const [name, args] of chosen) {
  const begun = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 2 ** 28,
  })
  const time = `${((performance.now() - begun) / 1000).toFixed(1)} s`
  const lines = stripVTControlCharacters(stdout).trim().split('\n')
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'}  ${name.padEnd(8)}${time.padStart(8)}  ${lines.at(-1)}`.trimEnd())
  if (status === 0) continue
  process.exitCode = 1
  console.error(`${stdout}${stderr}`.trimEnd())
  if (!values.all) break
}
