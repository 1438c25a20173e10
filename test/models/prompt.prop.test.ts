import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JsonValue } from '../../src/base/index.ts'
import { openCalls, parseMessages } from '../../src/messages/index.ts'
import { fromModelMessages, toModelMessages } from '../../src/models/index.ts'
import { history } from '../messages/arbitraries.ts'
import { NOW } from './raw-model.ts'

test('any history becomes a prompt, and the prompt a history that becomes the same prompt', () => {
  fc.assert(
    fc.property(history, (raw) => {
      const messages = parseMessages(JSON.parse(JSON.stringify(raw)) as JsonValue, { now: NOW })
      const prompt = toModelMessages(messages)
      const again = fromModelMessages(prompt, { now: NOW })
      expect(JSON.stringify(toModelMessages(again))).toBe(JSON.stringify(prompt))
    }),
    { numRuns: 150 },
  )
})

test('no call and no answer gets lost on the way', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('success', 'failed', 'denied', 'interrupted', 'retried'), { maxLength: 4 }),
      fc.nat(4),
      (outcomes, open) => {
        const calls = [...outcomes.keys(), ...Array.from({ length: open }, (_, i) => outcomes.length + i)]
        const messages = parseMessages(
          [
            {
              kind: 'response',
              parts: calls.map((i) => ({ part_kind: 'tool-call', tool_name: 't', tool_call_id: `c${i}`, args: {} })),
            },
            {
              kind: 'request',
              parts: outcomes.map((outcome, i) => ({
                part_kind: 'tool-return',
                tool_name: 't',
                tool_call_id: `c${i}`,
                content: i,
                outcome,
              })),
            },
          ],
          { now: NOW },
        )
        const again = fromModelMessages(toModelMessages(messages), { now: NOW })
        expect(openCalls(again).map((call) => call.tool_call_id)).toEqual(openCalls(messages).map((call) => call.tool_call_id))
      },
    ),
    { numRuns: 150 },
  )
})
