import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { isThreadlogError, Payload } from '../../src/base/index.ts'
import { catalogue, type EventDraft, encodeCommit, eventTypes } from '../../src/events/index.ts'
import { valuesOf } from '../support/event-arbitraries.ts'
import { goldenMeta } from '../support/golden-events.ts'

// The writer's own check and zod are two readings of one declaration: they accept the same drafts.

type Json = Record<string, unknown>

/** Replaces the value at a random place within records and lists. */
function replaceSomewhere(value: unknown, choices: number[], junk: unknown): unknown {
  const [choice = 0, ...rest] = choices
  if (typeof value !== 'object' || value === null || value instanceof Payload || choice % 7 === 6) return junk
  if (Array.isArray(value))
    return value.map((item, i) => (i === choice % value.length ? replaceSomewhere(item, rest, junk) : item))
  const names = Object.keys(value)
  const chosen = names[choice % names.length]
  return Object.fromEntries(
    names.map((name) => [name, name === chosen ? replaceSomewhere((value as Json)[name], rest, junk) : (value as Json)[name]]),
  )
}

const junk = fc.oneof(
  fc.anything(),
  fc.constantFrom('unrecognised', null, -1, 1.5, 2 ** 53, '\ud800', Payload.of(1), 'none', true, 'A'.repeat(64)),
)

test.each(eventTypes)('%s', (type) => {
  const schema: z.ZodType = catalogue[type]
  const property = fc.property(valuesOf(schema), fc.array(fc.nat(), { maxLength: 4 }), junk, (data, choices, other) => {
    const draft = { type, data: choices.length > 0 ? replaceSomewhere(data, choices, other) : data } as EventDraft
    let written: unknown
    try {
      written = encodeCommit(goldenMeta, [draft]).records[0]!.event.data
    } catch (error) {
      expect(isThreadlogError(error, 'event_invalid')).toBe(true)
    }
    if (written) expect(schema.safeParse(written).error).toBeUndefined()
    else expect(schema.safeParse(absentAsNull(draft.data)).success && !stricter(draft.data)).toBe(false)
  })
  fc.assert(property, { numRuns: 60 })
})

const absentAsNull = (value: unknown): unknown => {
  if (value === undefined) return null
  if (Array.isArray(value)) return value.map(absentAsNull)
  if (typeof value !== 'object' || value === null || value instanceof Payload) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, absentAsNull(item)]))
}

/** What only the writer refuses: text without a UTF-8 form, and the symbol that stands for unknown ones. */
const stricter = (value: unknown): boolean => {
  if (typeof value === 'string') return !value.isWellFormed() || value === 'unrecognised'
  if (typeof value !== 'object' || value === null || value instanceof Payload) return false
  return Object.values(value).some(stricter)
}
