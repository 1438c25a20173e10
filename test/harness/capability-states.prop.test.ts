import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { JsonValue, Payload } from '../../src/base/index.ts'
import type { EventDraft } from '../../src/events/index.ts'
import { CapabilityStates } from '../../src/harness/index.ts'
import type { CapabilityEntry } from '../../src/messages/index.ts'
import { json } from '../support/deferred-batches.ts'
import { codeOf } from '../support/refusals.ts'

// State spec §6 against the plainest model of it: a map from namespaces to (version, text).

const id = fc.constantFrom('a', 'b', '__proto__', 'a13n.example', 'a/b~c', 'constructor')
const version = fc.constantFrom('1', '2')
const op = fc.oneof(
  fc.record({ op: fc.constant('write' as const), id, version, value: json }),
  fc.record({ op: fc.constant('read' as const), id, version }),
  fc.record({ op: fc.constant('delete' as const), id }),
  fc.record({ op: fc.constant('snapshot' as const) }),
  fc.record({ op: fc.constant('changes' as const), from: fc.nat(2) }),
)
const entries = fc.dictionary(id, fc.record({ version, data: json }), { maxKeys: 3 })
const idOf = ({ data }: EventDraft): string => (data as { capability_id: string }).capability_id
const entryOf = ({ type, data }: EventDraft): string | undefined => {
  const { version, data: payload } = data as { version: string; data: Payload }
  return type === 'capability.deleted/1' ? undefined : JSON.stringify({ version, data: payload.value })
}
const any = z.custom<JsonValue>(() => true)

test('case 20, 21, 22, 23, 27: namespaces are replaced as a whole, detached in and out, and read under their exact version', () => {
  fc.assert(
    fc.property(entries, fc.array(op, { maxLength: 20 }), (start, ops) => {
      const states = new CapabilityStates(start as Record<string, CapabilityEntry>)
      const model = new Map(Object.entries(start).map(([key, entry]) => [key, JSON.stringify(entry)]))
      const changed = new Set<string>()
      const taken: [snapshot: object, text: string][] = []
      for (const one of ops) {
        if (one.op === 'write') {
          const text = JSON.stringify({ version: one.version, data: one.value })
          const value = structuredClone(one.value)
          states.write({ ...one, value })
          if (Array.isArray(value)) value.push('later')
          if (model.get(one.id) !== text) changed.add(one.id)
          model.set(one.id, text)
        } else if (one.op === 'delete') {
          if (model.delete(one.id)) changed.add(one.id)
          states.delete(one.id)
        } else if (one.op === 'snapshot') {
          const snapshot = states.snapshot()
          for (const entry of Object.values(states.snapshot())) entry.version = 'later'
          taken.push([snapshot, JSON.stringify(snapshot)])
        } else if (one.op === 'changes') {
          const drafts = states.drafts()
          expect(drafts.map(idOf).sort()).toEqual([...changed].sort())
          for (const draft of drafts) expect(entryOf(draft)).toBe(model.get(idOf(draft)))
          // Some of them land, and the others are still to come.
          const landed = drafts.slice(one.from)
          states.accepted(landed)
          for (const draft of landed) changed.delete(idOf(draft))
        } else {
          const text = model.get(one.id)
          const read = () => states.read({ ...one, schema: any })
          if (text === undefined) expect(read()).toBeNull()
          else if ((JSON.parse(text) as CapabilityEntry).version !== one.version)
            expect(codeOf(read)).toBe('capability_state_version_unsupported')
          else {
            const value = read() as JsonValue
            expect(JSON.stringify({ version: one.version, data: value })).toBe(text)
            if (Array.isArray(value)) value.push('later')
          }
        }
      }
      for (const [snapshot, text] of taken) expect(JSON.stringify(snapshot)).toBe(text)
      const now = states.snapshot()
      expect(Object.keys(now).sort()).toEqual([...model.keys()].sort())
      for (const [key, text] of model) expect(JSON.stringify(Object.entries(now).find(([name]) => name === key)?.[1])).toBe(text)
    }),
  )
})
