// Builds dist/ for publishing: JavaScript, declarations and the bin. Development needs no build.
//   node scripts/build.ts
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { importsOf } from './imports.ts'

const root = dirname(import.meta.dirname)
const dist = join(root, 'dist')
/** JavaScript that is published as it stands. */
const COPIED = ['cli/bin.js']

function build(): void {
  rmSync(dist, { recursive: true, force: true })
  const tsc = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'tsconfig.build.json')],
    {
      stdio: 'inherit',
    },
  )
  if (tsc.status !== 0) throw new Error('tsc failed')
  for (const file of COPIED) {
    copyFileSync(join(root, 'src', file), join(dist, file))
    chmodSync(join(dist, file), 0o755)
  }
}

/** Each relative import of dist/ names a file that is there. */
function checkImports(files: readonly string[]): void {
  for (const file of files)
    for (const name of importsOf(readFileSync(join(dist, file), 'utf8')))
      if (name.startsWith('.') && !existsSync(join(dist, dirname(file), name)))
        throw new Error(`dist/${file} imports ${name}, which is not there`)
}

/** The built code finds schemas/, and every pinned id reads. Returns how many. */
async function checkSchemas(): Promise<number> {
  const built: typeof import('../src/events/index.ts') = await import(pathToFileURL(join(dist, 'events/index.js')).href)
  const source = built.fileSchemas()
  const pins: { id: number }[] = JSON.parse(readFileSync(new URL('ids.json', built.packagedSchemas), 'utf8')).schemas
  for (const { id } of pins) if (!source.schema(id)) throw new Error(`schema ${id} cannot be read from dist/`)
  return pins.length
}

try {
  build()
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'))
  checkImports(files)
  const schemas = await checkSchemas()
  console.log(`dist/: ${files.length} modules, ${schemas} schemas found`)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}
