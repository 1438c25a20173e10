import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson, type JsonValue } from '../../src/base/index.ts'
import { parseMessages, toWire } from '../../src/messages/index.ts'
import { history } from './arbitraries.ts'

const now = '2026-01-01T00:00:00Z'
const sent = (value: unknown): JsonValue => JSON.parse(JSON.stringify(value)) as JsonValue

test('text → messages → text is a fixed point after the first reading', () => {
  fc.assert(
    fc.property(history, (messages) => {
      const first = parseMessages(sent(messages), { now })
      const text = JSON.stringify(first)
      const second = parseMessages(JSON.parse(text) as JsonValue, { now: '2030-01-01T00:00:00Z' })
      expect(JSON.stringify(second)).toBe(text)
    }),
    { numRuns: 150 },
  )
})

test('a message read back from canonical JSON has its wire text again', () => {
  fc.assert(
    fc.property(history, (messages) => {
      for (const message of parseMessages(sent(messages), { now })) {
        const stored = JSON.parse(canonicalJson(message as unknown as JsonValue)) as JsonValue
        expect(JSON.stringify(toWire(stored))).toBe(JSON.stringify(message))
      }
    }),
    { numRuns: 150 },
  )
})
