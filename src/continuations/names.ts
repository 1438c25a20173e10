import { z } from 'zod'
import { reject } from '../base/index.ts'

const NAME = /^[a-z][a-z0-9_.-]{0,127}$/
const SCHEMA_ID = /^[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,255}$/

// Exactly the code points that count as white space in the wire contract (continuation spec §7.7). Not `trim()`: that strips
// U+FEFF and keeps U+001C to U+001F and U+0085.
const BLANK = new Set([
  ...[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680],
  ...[0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a],
  ...[0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
])

/** True for the empty string and for white space only (continuation spec §7.7). */
export function isBlank(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (!BLANK.has(text.charCodeAt(i))) return false
  return true
}

/** True if `text` is well-formed Unicode, not blank and at most `limit` code points long. */
export function isUsableText(text: string, limit: number): boolean {
  if (text.length > limit * 2 || isBlank(text) || !text.isWellFormed()) return false
  if (text.length <= limit) return true
  let count = 0
  for (const _ of text) if (++count > limit) return false
  return true
}

const named = (pattern: RegExp, description: string) =>
  z.string({ error: description }).regex(pattern, { error: description }).describe(description)

const usable = (limit: number) => {
  const description = `a well-formed string with a visible character, at most ${limit} code points`
  return z
    .string({ error: description })
    .refine((text) => isUsableText(text, limit), { error: description })
    .describe(description)
}

/** Providers, capabilities and failure codes (continuation spec §1.2 "name rule"). */
export const nameSchema = named(NAME, '1 to 128 of a-z, 0-9, "_", ".", "-", the first a letter')

/** Ids of result schemas (continuation spec §1.2 "schema rule"). */
export const schemaIdSchema = named(
  SCHEMA_ID,
  '1 to 256 of letters, digits, "_", ".", ":", "/", "+", "-", the first a letter or digit',
)

/** A provider's own id of its job: at most 1,024 code points, kept as it is (continuation spec §1.9). */
export const externalIdSchema = usable(1024)

/** Application, continuation and result ids of a submission. */
export const idSchema = usable(512)

export const digestSchema = named(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits')

/** @throws ThreadlogError `invalid_argument` with the parameter's name */
export function checkArgument<T>(schema: z.ZodType<T>, value: unknown, path: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw reject('invalid_argument', `The argument ${path} is not usable.`, { path, expected: schema.description })
}
