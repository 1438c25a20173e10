import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countingIds, isThreadlogError, type JsonObject, type JsonValue, jsonEqual } from '../../src/base/index.ts'
import { HarnessState, openCalls } from '../../src/messages/index.ts'
import { state } from './arbitraries.ts'

const now = '2026-01-01T00:00:00Z'
const later = '2030-01-01T00:00:00Z'
const parse = (value: unknown) => HarnessState.parse(value, { now })

test('case 4, 17: a state read from its own text, or from its own JSON, is the same state, byte for byte', () => {
  fc.assert(
    fc.property(state, (given) => {
      const first = parse(given)
      const text = first.toText()
      const again = HarnessState.parse(text, { now: later })
      expect(again.toText()).toBe(text)
      expect(again.toJSON()).toEqual(first.toJSON())
      expect(HarnessState.parse(first.toJSON(), { now: later }).toText()).toBe(text)
      expect(HarnessState.parse(new TextEncoder().encode(text), { now: later }).toText()).toBe(text)
      const { threadId, messageHistory, entries, environmentStates, refs, unknownFields } = first
      const made = HarnessState.of({ threadId, messageHistory, entries, environmentStates, refs, unknownFields })
      expect(made.toText()).toBe(text)
    }),
  )
})

test('case 11, 30: what a state holds beside messages comes out as it went in', () => {
  fc.assert(
    fc.property(state, (given) => {
      const { agent_context_state, refs, environment_states, message_history: _, ...rest } = given as Record<string, JsonObject>
      const read = parse(given)
      const { entries } = read
      expect(jsonEqual(entries as never, agent_context_state?.['entries'] ?? {})).toBe(true)
      expect(read.refs).toEqual(refs ?? [])
      expect(jsonEqual(read.environmentStates as never, environment_states ?? {})).toBe(true)
      expect({ schema_version: '1', thread_id: read.threadId, ...read.unknownFields }).toEqual(rest)
    }),
  )
})

test('case 33: a fork differs from its source in its id and its environments, and the source in nothing', () => {
  fc.assert(
    fc.property(state, (given) => {
      const source = parse(given)
      const before = source.toText()
      const fork = source.fork({ ids: countingIds() })
      expect(fork.toText()).toBe(
        HarnessState.parse({ ...source.toJSON(), thread_id: fork.threadId, environment_states: {} }, { now: later }).toText(),
      )
      expect(openCalls(fork.messageHistory)).toEqual(openCalls(source.messageHistory))
      expect(fork.threadId).not.toBe(source.threadId)
      expect(source.toText()).toBe(before)
    }),
  )
})

// One value of a legal state replaced by any other, or left out.
test('whatever stands where in a state: it is read, or refused by name and place', () => {
  const junk = fc.constantFrom<unknown>(
    null,
    true,
    -1,
    1.5,
    2 ** 53,
    '',
    'x',
    ' ',
    [],
    {},
    [[]],
    { a: 1 },
    Number.NaN,
    'thr_a',
    '1',
  )
  fc.assert(
    fc.property(state, fc.nat(), fc.option(junk, { nil: undefined }), (given, at, other) => {
      const changed = structuredClone(given)
      const places = placesIn(changed)
      const [holder, key] = places[at % places.length]!
      if (other === undefined && !Array.isArray(holder)) delete (holder as JsonObject)[key]
      else (holder as Record<string, unknown>)[key] = other ?? null
      try {
        expect(parse(parse(changed).toText()).threadId).toMatch(/^[a-z]/)
      } catch (error) {
        if (!isThreadlogError(error, 'state_invalid')) throw error
        expect(error).toMatchObject({ path: expect.stringMatching(/^\$/), expected: expect.stringMatching(/./) })
      }
    }),
    { numRuns: 1000 },
  )
})

function placesIn(value: JsonValue): [holder: object, key: string][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]): [object, string][] => [[value, key], ...placesIn(item)])
}
