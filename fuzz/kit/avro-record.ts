import { readFileSync } from 'node:fs'
import { type Expected, expectedFields } from './expected.ts'
import { readStrict, type Tree, textOf } from './strict-json.ts'

// Results in Avro, written and read by hand: a schema id in five bytes, then the fields of `result/1` one after the other.

/** The fields of a result; texts and bytes of one character a byte. Absent ones are null. */
export interface AvroFields {
  application_id: string | null
  provider: string
  external_id: string | null
  continuation_id: string | null
  result_id: string | null
  schema_id: string | null
  proposal_digest: string | null
  /** JSON text, or what is none. */
  result: string | null
  failure: { code: string; retryable: boolean } | null
}

const BEFORE = ['external_id', 'continuation_id', 'result_id', 'schema_id', 'proposal_digest'] as const

const ids = JSON.parse(readFileSync(new URL('../../schemas/ids.json', import.meta.url), 'utf8')) as {
  schemas: { id: number; type: string }[]
}
const ID = ids.schemas.findLast(({ type }) => type === 'result/1')?.id ?? 0

/** The record, one character a byte. */
export function avroText(fields: AvroFields): string {
  const text = (value: string): string => long(value.length) + value
  const optional = (value: string | null): string => (value === null ? '\x00' : `\x02${text(value)}`)
  const { application_id, provider, result, failure } = fields
  const head = `\x00\x00\x00\x00${String.fromCharCode(ID)}${optional(application_id)}${text(provider)}`
  const failed = failure === null ? '\x00' : `\x02${text(failure.code)}${failure.retryable ? '\x01' : '\x00'}`
  return `${head}${BEFORE.map((name) => optional(fields[name])).join('')}${optional(result)}${failed}`
}

function long(value: number): string {
  let rest = value * 2
  let out = ''
  for (; rest > 127; rest = Math.floor(rest / 128)) out += String.fromCharCode((rest % 128) + 128)
  return out + String.fromCharCode(rest)
}

/** What a binary record is worth. */
export function expectedOfAvro(bytes: Uint8Array): Expected {
  const record = read(bytes)
  return record ? expectedFields(record) : { verdict: 'unreadable' }
}

function read(bytes: Uint8Array): Map<string, Tree> | undefined {
  let at = 5
  const fail = (): never => {
    throw WRONG
  }
  const number = (): number => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? fail()
      value |= BigInt(byte & 127) << shift
      if (byte < 128) break
      if (shift > 63n) fail()
    }
    return Number(value & 1n ? -(value + 1n) / 2n : value / 2n)
  }
  const raw = (): Uint8Array => {
    const length = number()
    if (length < 0 || at + length > bytes.length) fail()
    at += length
    return bytes.subarray(at - length, at)
  }
  const text = (): string => textOf(raw()) ?? fail()
  const union = <T>(make: () => T): T | undefined => {
    const branch = number()
    return branch === 0 ? undefined : branch === 1 ? make() : fail()
  }
  const record = new Map<string, Tree>()
  const set = (name: string, value: Tree | undefined) => void (value === undefined || record.set(name, value))
  try {
    if (bytes.length < 5 || Buffer.from(bytes).readUInt32BE(1) !== ID) return undefined
    set('application_id', union(text))
    set('provider', text())
    for (const name of BEFORE) set(name, union(text))
    const value = union(raw)
    set(
      'failure',
      union(() => failureOf(text(), bytes[at++] ?? fail())),
    )
    if (at !== bytes.length) return undefined
    if (value === undefined) return record
    const json = textOf(value)
    const strict = json === undefined ? undefined : readStrict(json, 255)
    if (!strict || strict.doubled) return undefined
    return record.set('result', strict.tree)
  } catch (error) {
    if (error === WRONG) return undefined
    throw error
  }
}

const WRONG = Symbol('no such record')

const failureOf = (code: string, flag: number): Tree =>
  new Map<string, Tree>([
    ['code', code],
    ['retryable', flag !== 0],
  ])
