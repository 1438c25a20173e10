// Packs the package, installs the tarball in an empty project and uses it there as a stranger would. Needs dist/ (npm run build).
//   node scripts/pack-check.ts [--keep]
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

const root = dirname(import.meta.dirname)
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
/** The bin's `env node` must find the Node that runs this. */
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }

interface PackedFile {
  path: string
}

/** What must be in the tarball, and what must not. */
const MUST = ['LICENSE', 'NOTICE', 'README.md', 'dist/cli/bin.js', 'dist/index.d.ts', 'package.json', 'schemas/ids.json']
const MUST_NOT = [/(?<!\.d)\.ts$/, /\.test\./, /^(?!dist\/|schemas\/|[A-Z]+(\.md)?$|package\.json$)/]

const { values } = parseArgs({ options: { keep: { type: 'boolean' } } })
const place = mkdtempSync(join(tmpdir(), 'threadlog-pack-'))
try {
  checkLock()
  const tarball = pack()
  install(tarball)
  checkEntries()
  checkTypes()
  node('consumer.ts')
  checkBin()
  console.log(`packed, installed and used: ${entries().join(', ')} and the bin`)
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
} finally {
  if (values.keep) console.log(place)
  else rmSync(place, { recursive: true, force: true })
}

/** The lock names packages, not where one machine fetched them. */
function checkLock(): void {
  if (readFileSync(join(root, 'package-lock.json'), 'utf8').includes('"resolved"'))
    throw new Error('package-lock.json has resolved addresses: npm install --omit-lockfile-registry-resolved')
}

function pack(): string {
  const output = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', place], root)
  const parsed = JSON.parse(output)
  const [packed]: { filename: string; files: PackedFile[]; size: number }[] = Array.isArray(parsed)
    ? parsed
    : Object.values(parsed)
  const files = packed!.files.map((file) => file.path)
  const missing = MUST.filter((file) => !files.includes(file))
  const unwanted = files.filter((file) => MUST_NOT.some((pattern) => pattern.test(file)))
  if (missing.length > 0) throw new Error(`not in the package: ${missing.join(', ')}`)
  if (unwanted.length > 0) throw new Error(`does not belong in the package: ${unwanted.join(', ')}`)
  console.log(`${packed!.filename}: ${files.length} files, ${Math.round(packed!.size / 1024)} kB`)
  return join(place, packed!.filename)
}

function install(tarball: string): void {
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  run('npm', ['install', '--prefer-offline', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund', tarball], place)
}

/** Published entries as a user writes them: `threadlog`, `threadlog/testing`, … */
function entries(): string[] {
  const keys = Object.keys(manifest.exports).filter((key) => key !== './package.json')
  return keys.map((key) => join(manifest.name, key).replace(/\/$/, ''))
}

/** Each entry loads in a project that has nothing but the package, and each has declarations. */
function checkEntries(): void {
  for (const key of Object.keys(manifest.exports))
    for (const file of Object.values<string>(key === './package.json' ? {} : manifest.exports[key]))
      if (!existsSync(join(place, 'node_modules', manifest.name, file)))
        throw new Error(`exports ${key}: ${file} is not in the package`)
  const imports = entries().map((entry, i) => `import * as e${i} from '${entry}'`)
  const checks = entries().map((entry, i) => `if (Object.keys(e${i}).length === 0) throw new Error('${entry} exports nothing')`)
  write('entries.ts', `${[...imports, ...checks].join('\n')}\n`)
  copyFileSync(join(root, 'scripts/pack/consumer.ts'), join(place, 'consumer.ts'))
  node('entries.ts')
}

/** Declarations resolve and check in a strict project; ours are checked too (`skipLibCheck` off), faults in other packages' are not ours. */
function checkTypes(): void {
  const types = join(place, 'node_modules/@types/node')
  mkdirSync(dirname(types), { recursive: true })
  // A dependency may have brought them.
  if (!existsSync(types)) symlinkSync(join(root, 'node_modules/@types/node'), types)
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext'],
    types: ['node'],
    strict: true,
    noEmit: true,
  }
  write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['entries.ts', 'consumer.ts'] }))
  const args = [join(root, 'node_modules/typescript/bin/tsc'), '-p', place, '--pretty', 'false']
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: place, env, encoding: 'utf8' })
  const errors = stdout.split('\n').filter((line) => /\berror TS\d+/.test(line))
  const ours = errors.filter((line) => !line.startsWith('node_modules/') || line.startsWith(`node_modules/${manifest.name}/`))
  if (ours.length > 0 || (status !== 0 && errors.length === 0))
    throw new Error(`tsc in the consumer project:\n${ours.join('\n') || stdout}`)
}

function checkBin(): void {
  const [name] = Object.keys(manifest.bin)
  const bin = join(place, 'node_modules/.bin', name!)
  const version = run(bin, ['--version'], place).trim()
  if (version !== manifest.version) throw new Error(`${name} --version says ${version}, package.json ${manifest.version}`)
  if (!run(bin, ['--help'], place).includes(name!)) throw new Error(`${name} --help does not name ${name}`)
}

function node(file: string): void {
  run(process.execPath, [file], place)
}

function write(file: string, text: string): void {
  writeFileSync(join(place, file), text)
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (status !== 0)
    throw new Error(`${[command, ...args].join(' ')} ended with ${error?.message ?? status}\n${stdout}${stderr}`.trimEnd())
  return stdout
}
