// Checks rule R1 over src/: which folder may import which, faces, cycles, packages, file sizes.
//   node scripts/layers.ts
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { parseArgs } from 'node:util'
import { importsOf } from './imports.ts'

/** Top to bottom: a folder imports those after it. */
const ORDER = ['cli', 'engine', 'harness', 'continuations', 'projections', 'log', 'events', 'messages', 'base']
/** What `models` imports, and which folders import it. */
const MODELS = { imports: ['messages', 'base'], importedBy: ['harness', 'engine', 'cli', 'testing', ''] }
/** Packages the main entry must not reach. */
const NOT_IN_MAIN = ['kafkajs', '@kafkajs/confluent-schema-registry']
const MOST_LINES = 400
const MANY_LINES = 250
/** Where the line limits hold. */
const SIZED = ['src', 'scripts', 'examples', 'bench', 'fuzz', 'test']

export interface LayerReport {
  /** What breaks a rule, each with the file. */
  violations: string[]
  /** What is allowed and worth knowing. */
  notes: string[]
}

/** One import between files of src/, or from a file to a package. Paths are relative to src/. */
interface Edge {
  from: string
  /** The file, or undefined when it is a package. */
  to?: string
  /** The name as written; for a package without its subpath. */
  name: string
}

/** @param root the folder with package.json and src/ */
export function checkLayers(root: string): LayerReport {
  const files = sources(join(root, 'src'))
  const violations: string[] = []
  const edges: Edge[] = []
  for (const file of files)
    for (const name of importsOf(readFileSync(join(root, 'src', file), 'utf8'))) {
      const edge = edgeOf(file, name)
      // The bin is published as it stands, so it names the built file.
      const source = edge.to?.replace(/\.js$/, '.ts')
      if (file.endsWith('.js') && source && existsSync(join(root, 'src', source))) edge.to = source
      if (edge.to !== undefined && !existsSync(join(root, 'src', edge.to))) violations.push(`src/${file}: ${name} does not exist`)
      else edges.push(edge)
    }
  const inside = edges.filter((edge): edge is Required<Edge> => edge.to !== undefined)
  const entries = publishedEntries(root)
  violations.push(...inside.flatMap(direction), ...inside.flatMap((edge) => face(edge, new Set(files), entries)))
  violations.push(...cycles(files, inside), ...mainEntry(edges))
  const packages = checkPackages(root, edges)
  const sizes = checkSizes(root)
  return {
    violations: [...violations, ...packages.violations, ...sizes.violations],
    notes: [...packages.notes, ...sizes.notes],
  }
}

/** `cli/main.ts` → `cli`; a file directly in src/ → `''`. */
const folderOf = (file: string): string => (file.includes('/') ? file.slice(0, file.indexOf('/')) : '')

function edgeOf(from: string, name: string): Edge {
  if (name.startsWith('.')) return { from, to: posix.normalize(posix.join(posix.dirname(from), name)), name }
  const parts = name.split('/')
  return { from, name: name.startsWith('@') ? parts.slice(0, 2).join('/') : name.startsWith('node:') ? name : parts[0]! }
}

function direction({ from, to }: Required<Edge>): string[] {
  const [above, below] = [folderOf(from), folderOf(to)]
  const refuse = (why: string) => [`src/${from} imports src/${to}: ${why}`]
  if (above === below && !to.startsWith('..')) return []
  if (to.startsWith('..')) return refuse('outside src/')
  if (below === 'testing') return refuse('nothing imports testing')
  if (above === 'testing') return []
  if (below === '') return above === 'cli' ? [] : refuse('only cli and testing import what stands directly in src/')
  if (above === '') return []
  if (below === 'models') return MODELS.importedBy.includes(above) ? [] : refuse(`${above} must not import models`)
  if (above === 'models')
    return MODELS.imports.includes(below) ? [] : refuse(`models imports ${MODELS.imports.join(' and ')} only`)
  for (const folder of [above, below]) if (!ORDER.includes(folder)) return refuse(`${folder} has no place in the order of layers`)
  return ORDER.indexOf(above) < ORDER.indexOf(below) ? [] : refuse(`${below} is above ${above}`)
}

/** What users import is a face of its own: the sources of `exports`. */
function publishedEntries(root: string): Set<string> {
  const { exports = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports?: Record<string, string | { default?: string }>
  }
  const built = Object.values(exports).map((entry) => (typeof entry === 'string' ? entry : (entry.default ?? '')))
  return new Set(built.map((file) => file.replace(/^\.\/dist\//, '').replace(/\.js$/, '.ts')))
}

/**
 * The outermost folder entered must be entered through its index.ts, or through that of a published entry; inside a layer, only where the
 * folder has one.
 */
function face({ from, to }: Required<Edge>, files: ReadonlySet<string>, entries: ReadonlySet<string>): string[] {
  if (to.startsWith('..') || entries.has(to)) return []
  const parts = to.split('/')
  for (let depth = 1; depth < parts.length; depth++) {
    const folder = parts.slice(0, depth).join('/')
    if (from.startsWith(`${folder}/`)) continue
    const index = `${folder}/index.ts`
    if (to === index || (depth > 1 && !files.has(index))) return []
    return [`src/${from} imports src/${to}: past the face src/${index}`]
  }
  return []
}

function cycles(files: readonly string[], edges: readonly Required<Edge>[]): string[] {
  const next = new Map<string, string[]>(files.map((file) => [file, []]))
  for (const { from, to } of edges) next.get(from)?.push(to)
  const found: string[] = []
  const done = new Set<string>()
  const path: string[] = []
  const visit = (file: string): void => {
    const start = path.indexOf(file)
    if (start >= 0) {
      const loop = [...path.slice(start), file]
      found.push(`import cycle: ${loop.map((name) => `src/${name}`).join(' → ')}`)
      return
    }
    if (done.has(file)) return
    path.push(file)
    for (const to of next.get(file) ?? []) visit(to)
    path.pop()
    done.add(file)
  }
  for (const file of files) visit(file)
  return found
}

function mainEntry(edges: readonly Edge[]): string[] {
  const via = new Map<string, string | undefined>([['index.ts', undefined]])
  const found: string[] = []
  for (const file of via.keys())
    for (const { to, name } of edges.filter((edge) => edge.from === file)) {
      if (to !== undefined && !via.has(to)) via.set(to, file)
      if (to !== undefined || !NOT_IN_MAIN.includes(name)) continue
      const path: string[] = []
      for (let at: string | undefined = file; at !== undefined; at = via.get(at)) path.unshift(`src/${at}`)
      found.push(`the main entry reaches ${name}: ${path.join(' → ')}`)
    }
  return found
}

function checkPackages(root: string, edges: readonly Edge[]): LayerReport {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const runtime = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies })
  const page = join(root, 'docs/dependencies.md')
  const documented = existsSync(page) ? readFileSync(page, 'utf8') : ''
  const violations: string[] = []
  const used = new Set<string>()
  for (const { from, to, name } of edges) {
    if (to !== undefined || name.startsWith('node:')) continue
    if (builtinModules.includes(name)) violations.push(`src/${from} imports ${name}: write node:${name}`)
    else if (!runtime.includes(name)) violations.push(`src/${from} imports ${name}: not in dependencies`)
    used.add(name)
  }
  for (const name of new Set([...runtime, ...Object.keys(manifest.devDependencies ?? {})]))
    if (!documented.includes(`\`${name}\``)) violations.push(`${name} has no line in docs/dependencies.md`)
  const notes = runtime.filter((name) => !used.has(name)).map((name) => `${name} is a dependency that src/ does not import`)
  return { violations, notes }
}

function checkSizes(root: string): LayerReport {
  const violations: string[] = []
  const notes: string[] = []
  for (const folder of SIZED)
    for (const file of sources(join(root, folder))) {
      const lines = readFileSync(join(root, folder, file), 'utf8')
        .trimEnd()
        .split('\n').length
      if (lines > MOST_LINES) violations.push(`${folder}/${file} has ${lines} lines, ${MOST_LINES} at most: split it by concept`)
      else if (lines > MANY_LINES) notes.push(`${folder}/${file} has ${lines} lines`)
    }
  return { violations, notes }
}

/** TypeScript and JavaScript files under `folder`, with forward slashes, sorted. */
function sources(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.[cm]?[jt]s$/.test(file) && !/(^|\/)(node_modules|\.tmp)\//.test(file))
    .sort()
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { root: { type: 'string' } } })
  const { violations, notes } = checkLayers(values.root ?? dirname(import.meta.dirname))
  for (const note of notes) console.log(`note: ${note}`)
  for (const violation of violations) console.error(violation)
  console.log(violations.length === 0 ? 'layers hold' : `${violations.length} violations`)
  process.exitCode = violations.length === 0 ? 0 : 1
}
