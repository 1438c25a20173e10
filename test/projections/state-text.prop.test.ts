import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AppendList, canonicalJson, type JsonValue, Payload, sha256Hex } from '../../src/base/index.ts'
import { harnessStateJson } from '../../src/projections/harness-state.ts'
import { type HistoryEntry, initial, type ThreadState } from '../../src/projections/state.ts'
import { stateDigest, statePieces } from '../../src/projections/state-text.ts'

const LIMIT = 400

const entry = (text: string): HistoryEntry => ({
  role: 'request',
  template: Payload.of({ kind: 'request', parts: [{ content: text }] }),
  settled: undefined,
  version: 1,
  runId: null,
})

/** What can become of a state between two checkpoints. */
const step = fc.oneof(
  fc.record({ do: fc.constant('push' as const), text: fc.string({ unit: 'grapheme', maxLength: 60 }) }),
  fc.record({ do: fc.constant('revise' as const), at: fc.nat(20), text: fc.string({ maxLength: 60 }) }),
  fc.record({ do: fc.constant('write' as const), text: fc.string({ maxLength: 20 }) }),
  fc.record({ do: fc.constant('fork' as const) }),
  fc.record({ do: fc.constant('go back' as const), to: fc.nat(20) }),
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

function next(state: ThreadState, s: Step, earlier: readonly ThreadState[]): ThreadState {
  switch (s.do) {
    case 'push':
      return { ...state, history: state.history.push(entry(s.text)) }
    case 'revise':
      return { ...state, history: AppendList.of([...state.history].map((e, i) => (i === s.at ? entry(s.text) : e))) }
    case 'write':
      return { ...state, capabilities: new Map(state.capabilities).set(s.text, { version: '1', data: Payload.of(s.text) }) }
    case 'fork':
      return { ...state, history: state.history.fork() }
    case 'go back':
      return earlier[s.to % earlier.length] as ThreadState
  }
}

it('is the canonical JSON of the state and its digest, whatever was written down before', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.option(fc.jsonValue()), (steps, unknown) => {
      const imported = Payload.of({ zebra: unknown as JsonValue, aside: unknown as JsonValue })
      let state: ThreadState = { ...initial, imported }
      const earlier = [state]
      for (const s of steps) {
        state = next(state, s, earlier)
        earlier.push(state)
        const expected = canonicalJson(harnessStateJson(state))
        const pieces = statePieces(state, LIMIT)
        expect(pieces && String(Buffer.concat(pieces))).toBe(Buffer.byteLength(expected) <= LIMIT ? expected : undefined)
        expect(stateDigest(state)).toBe(sha256Hex(expected))
      }
    }),
  )
})
