// Writes schemas/ from the event catalogue, the retired event types and the edge messages.
//   node scripts/schemas.ts                write; new types get the next id
//   node scripts/schemas.ts --check        compare only; exit 1 when something differs
//   node scripts/schemas.ts --evolve       a changed schema gets a new id, the old one moves to schemas/archive/
//   node scripts/schemas.ts --unreleased   a changed schema keeps its id: only while no log anywhere holds it
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  type AvroCatalogue,
  type AvroNamed,
  type AvroSchema,
  avroCatalogue,
  definitions,
  expand,
  fileName,
  fingerprint,
  NAMESPACE,
} from '../src/events/avro-schema.ts'
import { fileSchemas, type PinnedSchema } from '../src/events/schema-source.ts'

const ENVELOPE = `${NAMESPACE}.Envelope`

/** Content of every file under schemas/ that follows from the catalogue, by file name. */
export function schemaFiles({ events, edges, named }: AvroCatalogue): Map<string, string> {
  const envelope = expand(ENVELOPE, named)
  const inEnvelope = new Set(definitions(envelope).keys())
  const users = new Map<string, number>()
  for (const record of events.values())
    for (const name of definitions(expand(record, named, new Set(inEnvelope))).keys()) users.set(name, (users.get(name) ?? 0) + 1)

  const known = new Set(inEnvelope)
  const common: AvroNamed[] = []
  // What only edge messages use is not in `users`: each of their files stands alone, for programs that have nothing else of this package.
  for (const name of named.keys())
    if ((users.get(name) ?? 0) > 1 && !known.has(name)) common.push(expand(name, named, known) as AvroNamed)

  const files = new Map<string, string>([
    ['envelope.avsc', print(envelope)],
    ['common.avsc', print(common)],
  ])
  for (const [type, record] of events) files.set(fileName(type), print(expand(record, named, new Set(known))))
  for (const [type, record] of edges) files.set(fileName(type), print(expand(record, named)))
  return files
}

/** Pins after the catalogue: unchanged, new and changed ones. */
export function nextPins({ events, edges, named }: AvroCatalogue, pins: readonly PinnedSchema[]) {
  const current = new Map(pins.map((pin) => [pin.type, pin]))
  let last = Math.max(0, ...pins.map((pin) => pin.id))
  const added: PinnedSchema[] = []
  const changed: { pin: PinnedSchema; fingerprint: string }[] = []
  for (const [type, record] of [...events, ...edges]) {
    const now = fingerprint(expand(record, named))
    const pin = current.get(type)
    if (!pin) added.push({ id: ++last, type, fingerprint: now })
    else if (pin.fingerprint !== now) changed.push({ pin, fingerprint: now })
  }
  return { added, changed, last }
}

const print = (schema: AvroSchema): string => `${JSON.stringify(schema, null, 2)}\n`
const printPins = (schemas: readonly PinnedSchema[]): string => `${JSON.stringify({ schemas }, null, 2)}\n`

function main(): number {
  const directory = new URL('../schemas/', import.meta.url)
  const { values } = parseArgs({
    options: { check: { type: 'boolean' }, evolve: { type: 'boolean' }, unreleased: { type: 'boolean' } },
  })
  const idsFile = new URL('ids.json', directory)
  const pins: PinnedSchema[] = existsSync(idsFile) ? JSON.parse(readFileSync(idsFile, 'utf8')).schemas : []
  const catalogue = avroCatalogue()
  const files = schemaFiles(catalogue)
  const { added, changed, last } = nextPins(catalogue, pins)
  const pinned = new Set(pins.map((pin) => fileName(pin.type)))

  const differing = [...files].filter(([name, content]) => read(new URL(name, directory)) !== content).map(([name]) => name)
  const orphans = existsSync(directory) ? readdirSync(directory).filter((name) => pinned.has(name) && !files.has(name)) : []
  if (values.check) {
    for (const name of differing) console.error(`schemas/${name} does not follow from its declaration`)
    for (const name of orphans)
      console.error(`schemas/${name} has no type; a type that is replaced is retired in src/events/upcast.ts`)
    for (const { type } of added) console.error(`${type} has no pinned id`)
    for (const { pin } of changed) console.error(`${pin.type} changed under its pinned id ${pin.id}`)
    return differing.length + orphans.length + added.length + changed.length > 0 ? 1 : 0
  }
  if (changed.length > 0 && !values.evolve && !values.unreleased) {
    console.error(`changed under a pinned id: ${changed.map(({ pin }) => pin.type).join(', ')}`)
    console.error('--evolve gives new ids (optional field with default, grown enum); --unreleased keeps them')
    return 1
  }
  mkdirSync(new URL('archive/', directory), { recursive: true })
  const before = fileSchemas(directory)
  const evolved = changed.map(({ pin, fingerprint }, i) => {
    if (values.unreleased) return { ...pin, fingerprint }
    writeFileSync(new URL(`archive/${pin.id}.avsc`, directory), print(before.schema(pin.id)!.avro))
    return { id: last + 1 + i, type: pin.type, fingerprint }
  })
  const kept = values.unreleased ? pins.map((pin) => evolved.find((next) => next.id === pin.id) ?? pin) : [...pins]
  const next = [...kept, ...added, ...(values.unreleased ? [] : evolved)]
  for (const [name, content] of files) writeFileSync(new URL(name, directory), content)
  for (const name of orphans) rmSync(new URL(name, directory))
  writeFileSync(idsFile, printPins(next))
  console.log(`${files.size} files, ${next.length} ids; written ${differing.length}, removed ${orphans.length}`)
  return 0
}

const read = (file: URL): string | undefined => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)

if (import.meta.main) process.exitCode = main()
