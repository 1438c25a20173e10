import { z } from 'zod'
import { Payload } from '../base/index.ts'

/**
 * The field kinds of the catalogue. Each names its Avro form once, in `meta.avro`; everything else (records, lists, absent values)
 * follows from the zod structure, so the `.avsc` files can be proven equal to it.
 */
const avro = (type: unknown) => ({ avro: type })

/** Any text: ids, names, codes. */
export const text = z.string().meta(avro('string'))
/** A non-negative whole number below 2^53. */
export const count = z.int().min(0).meta(avro('long'))
/** Epoch milliseconds. */
export const instant = z
  .int()
  .min(0)
  .meta(avro({ type: 'long', logicalType: 'timestamp-millis' }))
export const flag = z.boolean().meta(avro('boolean'))
/** 32 bytes, in TypeScript 64 lower-case hex digits. */
export const hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta(avro('threadlog.events.Hash'))
/** 16 bytes, in TypeScript 32 lower-case hex digits. */
export const commitId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .meta(avro('threadlog.events.CommitId'))
/** Free-form JSON: Avro bytes of canonical JSON. */
export const json = z.custom<Payload>((value) => value instanceof Payload).meta(avro('bytes'))

/** The symbol a reader sees for a value its catalogue does not know; a fold that meets it quarantines the thread (R7). */
export const UNRECOGNISED = 'unrecognised'

/** One of a closed list. The Avro enum is called `name` and defaults to {@link UNRECOGNISED}, so the list may grow. */
export const choice = <const T extends readonly [string, ...string[]]>(name: string, symbols: T) =>
  z.enum([...symbols, UNRECOGNISED] as [...T, typeof UNRECOGNISED]).meta({ title: name })

/** A nested record; `name` is its Avro name. */
export const record = <T extends z.ZodRawShape>(name: string, shape: T) => z.strictObject(shape).meta({ title: name })

/** May be absent: Avro `["null", T]` with default null. */
export const optional = <T extends z.ZodType>(type: T) => type.nullable()
