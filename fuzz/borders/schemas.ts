import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isThreadlogError } from '../../src/base/index.ts'
import {
  decodeEvent,
  type EventCodec,
  type EventDraft,
  encodeCommit,
  eventCodec,
  fileSchemas,
  packagedSchemas,
} from '../../src/events/index.ts'
import { goldenMeta, readGolden, unpack } from '../../test/support/golden-events.ts'
import { accepted, type Border, Fault, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { changedBytes, changedText } from '../kit/json-text.ts'
import { nameOf } from '../kit/marker.ts'
import { shorterTexts } from '../kit/minimise.ts'
import type { Random } from '../kit/random.ts'
import { changedValue } from '../kit/values.ts'

/** What became of one file of the folder: other bytes (one character each), a folder in its place, or nothing. */
export interface SchemaCase {
  file: string
  content: string | 'folder' | null
  is: 'bytes' | 'folder' | 'gone'
}

/** Schema files that somebody has changed, read by the codec. */
export const schemas: Border<SchemaCase> = {
  name: 'schemas',
  about: 'schema files and ids.json: changed, cut, swapped, missing; then events written and read with them',
  limitMs: 5_000,
  renewAfter: 3_000,
  open: async () => new SchemaRig(),
  generate: schemaCase,
  *simpler(input) {
    if (input.is === 'bytes') for (const content of shorterTexts(input.content ?? '')) yield { ...input, content }
  },
}

let known: Map<string, string> | undefined

function originals(): Map<string, string> {
  if (known) return known
  known = new Map()
  for (const name of readdirSync(packagedSchemas, { recursive: true, encoding: 'utf8' }).sort())
    if (/\.(avsc|json)$/.test(name)) known.set(name, readFileSync(new URL(name, packagedSchemas)).toString('latin1'))
  return known
}

function schemaCase(random: Random): SchemaCase {
  const names = [...originals().keys()]
  const file = random.once(4) ? 'ids.json' : random.once(8) ? random.pick(['envelope.avsc', 'common.avsc']) : random.pick(names)
  const content = originals().get(file) ?? ''
  const bytes = (changed: string): SchemaCase => ({ file, content: changed, is: 'bytes' })
  return random.any<SchemaCase>(
    () => bytes(changedBytes(random, content)),
    () => bytes(changedText(random, content)),
    () => bytes(JSON.stringify(changedValue(random, JSON.parse(content)))),
    () => bytes(JSON.stringify(changedValue(random, JSON.parse(content)))),
    () => bytes(JSON.stringify(swapped(random, JSON.parse(content)))),
    () => bytes(originals().get(random.pick(names)) ?? ''),
    () => bytes(''),
    () => ({ file, content: null, is: 'gone' }),
    () => ({ file, content: null, is: 'folder' }),
  )
}

/** Fields or symbols in another order, names and types exchanged: a schema that is one, and another. */
function swapped(random: Random, schema: unknown): unknown {
  const lists: unknown[][] = []
  const collect = (value: unknown): void => {
    if (Array.isArray(value) && value.length > 1) lists.push(value)
    if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) collect(item)
  }
  collect(schema)
  if (lists.length === 0) return schema
  const list = random.pick(lists)
  const [i, j] = [random.below(list.length), random.below(list.length)]
  ;[list[i], list[j]] = [list[j], list[i]]
  return schema
}

class SchemaRig implements Rig<SchemaCase> {
  readonly #folder = mkdtempSync(join(tmpdir(), 'threadlog-fuzz-schemas-'))

  constructor() {
    cpSync(packagedSchemas, this.#folder, { recursive: true })
  }

  async try({ file, content, is }: SchemaCase): Promise<Outcome> {
    const place = join(this.#folder, file)
    rmSync(place, { recursive: true, force: true })
    if (is === 'bytes') writeFileSync(place, Buffer.from(content ?? '', 'latin1'))
    if (is === 'folder') mkdirSync(place)
    try {
      return used(eventCodec(fileSchemas(pathToFileURL(`${this.#folder}/`))), file)
    } finally {
      rmSync(place, { recursive: true, force: true })
      writeFileSync(place, Buffer.from(originals().get(file) ?? '', 'latin1'))
    }
  }

  close = async () => rmSync(this.#folder, { recursive: true, force: true })
}

/** Events of every type, written with the codec and read with the packaged schemas, and the other way round. */
function used(codec: EventCodec, file: string): Outcome {
  let code: string | undefined
  for (const { type, data, bytes, hash } of readGolden()) {
    const record = Uint8Array.from(Buffer.from(bytes, 'hex'))
    code =
      attempt(() => {
        const event = codec.decodeEvent(record)
        promise(
          event.hash === hash && same(event, decodeEvent(record)),
          'silent',
          'a changed schema reads an event as another',
          file,
        )
      }) ?? code
    // Types of old logs are read and not written.
    if (decodeEvent(record).type !== type) continue
    code =
      attempt(() => {
        const draft = { type, data: unpack(data) } as EventDraft
        // What was recorded may be of an earlier schema of its type: what counts is what the packaged ones write now.
        const [made, expected] = [codec.encodeCommit, encodeCommit].map((encode) => encode(goldenMeta, [draft]).records[0])
        promise(
          made !== undefined && expected !== undefined && Buffer.from(made.bytes).equals(expected.bytes),
          'silent',
          'a changed schema writes other bytes',
          file,
        )
      }) ?? code
  }
  return code === undefined ? accepted('no difference') : refused(code)
}

function attempt(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof Fault) throw error
    // Schema files are ours: their text is no payload.
    const code = isThreadlogError(error) ? error.code : nameOf(error)
    promise(
      ['schema_invalid', 'event_undecodable', 'event_invalid'].includes(code),
      'uncoded',
      `a changed schema is told as ${code}`,
    )
    return code
  }
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)
