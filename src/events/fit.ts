import { z } from 'zod'
import { Payload, reject } from '../base/index.ts'
import { UNRECOGNISED } from './fields.ts'

/** Checks a value against its declaration and returns it as a decoder would give it. Throws {@link Misfit}. */
type Check = (value: unknown) => unknown

/** A value that does not fit; the path grows outwards while it is thrown, so good values cost no path. */
class Misfit {
  readonly expected: string
  path = ''
  constructor(expected: string) {
    this.expected = expected
  }
}

/**
 * Turns a declaration of the catalogue into its check, once. Absent values become null, fields stand in declared order, lists and
 * records are copied, payloads are written down; so the result equals what a decoder gives.
 * The check throws ThreadlogError `event_invalid` with the path under `at`, never quoting a value.
 */
export function fitOf(schema: z.ZodType): (value: unknown, at: string) => unknown {
  const check = checkOf(schema)
  return (value, at) => {
    try {
      return check(value)
    } catch (misfit) {
      if (!(misfit instanceof Misfit)) throw misfit
      const path = at + misfit.path
      throw reject('event_invalid', `An event does not fit its type at ${path}.`, { path, expected: misfit.expected })
    }
  }
}

function checkOf(schema: z.ZodType): Check {
  if (schema instanceof z.ZodNullable) {
    const inner = checkOf(schema.unwrap() as z.ZodType)
    return (value) => (value === undefined || value === null ? null : inner(value))
  }
  if (schema instanceof z.ZodArray) return listCheck(checkOf(schema.element as z.ZodType))
  if (schema instanceof z.ZodObject) return recordCheck(schema)
  if (schema instanceof z.ZodEnum) {
    // What a reader shows for symbols it does not know is never written.
    const symbols = new Set<unknown>(schema.options.filter((symbol) => symbol !== UNRECOGNISED))
    return test((value) => symbols.has(value), `one of ${[...symbols].join(', ')}`)
  }
  return leafCheck(schema)
}

function listCheck(item: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) throw new Misfit('a list')
    return Array.from(value, (entry, i) => within(item, entry, `[${i}]`))
  }
}

function recordCheck(schema: z.ZodObject): Check {
  const names = Object.keys(schema.shape)
  const checks = names.map((name) => checkOf(schema.shape[name] as z.ZodType))
  const known = new Set(names)
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Misfit('a record')
    for (const key in value) if (!known.has(key)) throw outwards(new Misfit('no such field'), `.${key}`)
    const out: Record<string, unknown> = {}
    let name = ''
    try {
      for (let i = 0; i < names.length; i++) {
        name = names[i] as string
        out[name] = (checks[i] as Check)((value as Record<string, unknown>)[name])
      }
    } catch (misfit) {
      throw outwards(misfit, `.${name}`)
    }
    return out
  }
}

function within(check: Check, value: unknown, step: string): unknown {
  try {
    return check(value)
  } catch (misfit) {
    throw outwards(misfit, step)
  }
}

function outwards(misfit: unknown, step: string): unknown {
  if (misfit instanceof Misfit) misfit.path = step + misfit.path
  return misfit
}

function leafCheck(schema: z.ZodType): Check {
  const { avro } = (schema.meta() ?? {}) as { avro?: string | { type: string } }
  switch (typeof avro === 'object' ? avro.type : avro) {
    case 'string':
      // A lone surrogate has no UTF-8 form and would come back as another text.
      return test((value) => typeof value === 'string' && value.isWellFormed(), 'well-formed text')
    case 'long':
      return countCheck
    case 'boolean':
      return test((value) => typeof value === 'boolean', 'true or false')
    case 'threadlog.events.Hash':
      return test((value) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value), '64 lower-case hex digits')
    case 'threadlog.events.CommitId':
      return test((value) => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value), '32 lower-case hex digits')
    case 'bytes':
      return payloadCheck
    default:
      throw new Error('a field of the catalogue has no check')
  }
}

const countCheck: Check = (value) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Misfit('a whole number from 0 to 2^53 − 1')
  return (value as number) + 0 // −0 has no wire form
}

const payloadCheck: Check = (value) => {
  if (!(value instanceof Payload)) throw new Misfit('a Payload')
  const bytes = wireOf(value)
  if (!bytes?.length) throw new Misfit('a Payload of a JSON value')
  return value
}

function wireOf(payload: Payload): Uint8Array | undefined {
  try {
    return payload.wire
  } catch {
    return undefined
  }
}

const test =
  (holds: (value: unknown) => boolean, expected: string): Check =>
  (value) => {
    if (!holds(value)) throw new Misfit(expected)
    return value
  }
