import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Message, parseMessages } from '../../src/messages/index.ts'
import { toModelMessages } from '../../src/models/index.ts'
import { ask, finish, NOW, rawModel } from './raw-model.ts'

const id = fc.constantFrom('0', '1')
const delta = fc.constantFrom('', 'a', '{"x":1}')
const part = (type: string, fields: Record<string, fc.Arbitrary<unknown>> = {}) =>
  fc.record({ type: fc.constant(type), ...fields })
const anyPart = fc.oneof(
  part('text-start', { id }),
  part('text-delta', { id, delta }),
  part('text-end', { id }),
  part('reasoning-start', { id }),
  part('reasoning-delta', { id, delta }),
  part('reasoning-end', { id }),
  part('tool-input-start', { id, toolName: fc.constant('t') }),
  part('tool-input-delta', { id, delta }),
  part('tool-input-end', { id }),
  part('tool-call', { toolCallId: id, toolName: fc.constant('t'), input: delta, providerExecuted: fc.boolean() }),
  part('tool-result', { toolCallId: id, toolName: fc.constant('t'), result: fc.jsonValue() }),
  part('error', { error: fc.jsonValue() }),
  fc.constantFrom(finish(), finish('length'), finish('interrupted'), finish('error'), finish('stop', 'pause_turn')),
  fc.constant(new Error('reset')),
  fc.jsonValue(),
)

test('whatever a stream brings, the outcome is a value, and what it keeps is a history that can be sent again', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyPart, { maxLength: 12 }), async (parts) => {
      const outcome = await ask(rawModel(parts))
      expect(['response', 'failed']).toContain(outcome.kind)
      const message = outcome.kind === 'response' ? outcome.message : 'partial' in outcome ? outcome.partial : undefined
      if (message === undefined) return
      const read: Message[] = parseMessages(JSON.parse(JSON.stringify([message])), { now: NOW })
      expect(read).toEqual([message])
      toModelMessages(read)
      if (outcome.kind === 'failed') {
        expect(message.state).toBe('interrupted')
        expect(message.parts.length).toBeGreaterThan(0)
      }
    }),
    { numRuns: 150 },
  )
})
