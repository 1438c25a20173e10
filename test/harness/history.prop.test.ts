import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../src/base/index.ts'
import {
  asShown,
  closeOlder,
  closeUnanswered,
  coldStart,
  integrity,
  mergeAdjacent,
  withoutBrokenNatives,
} from '../../src/harness/history/index.ts'
import { type Message, openCalls, type RequestPart } from '../../src/messages/index.ts'
import { history, windows } from '../support/histories.ts'

const timestamp = '2026-01-01T00:00:00Z'
const AS_UNKNOWN = { content: 'nobody knows', timestamp }
const steps: [name: string, step: (history: readonly Message[]) => readonly Message[]][] = [
  ['withoutBrokenNatives', withoutBrokenNatives],
  ['closeUnanswered', (h) => closeUnanswered(h, AS_UNKNOWN)],
  ['closeOlder', (h) => closeOlder(h, AS_UNKNOWN)],
  ['integrity', integrity],
  ['coldStart', coldStart],
  ['mergeAdjacent', mergeAdjacent],
  ['asShown', (h) => asShown(h, AS_UNKNOWN)],
]

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const item of Object.values(value)) frozen(item)
  }
  return value
}

describe.each(steps)('%s', (_, step) => {
  test('leaves what it is given, does nothing twice, and gives the same history back when nothing changes', () => {
    fc.assert(
      fc.property(history, (given) => {
        // One tail is looked at: of two cut responses in a row, which nobody writes, the second would stand before the first.
        fc.pre(given.slice(-2).filter((m) => m.kind === 'response' && m.state === 'interrupted').length < 2)
        const once = step(frozen(given))
        expect(step(frozen(once))).toBe(once)
        if (JSON.stringify(once) === JSON.stringify(given)) expect(once).toBe(given)
      }),
      { numRuns: 300 },
    )
  })

  test('what it gives is messages of the wire, and every response but a cut one stands as it was', () => {
    fc.assert(
      fc.property(history, (given) => {
        const responses = (messages: readonly Message[]) =>
          messages.filter((m) => m.kind === 'response' && m.state !== 'interrupted')
        expect(responses(step(given))).toEqual(responses(given))
      }),
    )
  })
})

test("after integrity no answer is nobody's and none is second; other parts all stay, in their order", () => {
  fc.assert(
    fc.property(history, (given) => {
      const kept = integrity(given)
      for (const { calls, answers } of windows(kept)) {
        expect(new Set(answers).size).toBe(answers.length)
        for (const answer of answers) expect(calls).toContain(answer)
      }
      const others = (messages: readonly Message[]) =>
        messages.flatMap((m) => (m.kind === 'request' ? m.parts.filter((part) => part.part_kind !== 'tool-return') : []))
      expect(others(kept)).toEqual(others(given))
    }),
  )
})

test('an answer that counts is never lost to integrity', () => {
  fc.assert(
    fc.property(history, (given) => {
      const untroubled = given.map((m) =>
        m.kind === 'request' ? { ...m, parts: m.parts.filter((part) => part.part_kind !== 'retry-feedback') } : m,
      )
      expect(openCalls(integrity(untroubled)).map((c) => c.tool_call_id)).toEqual(
        openCalls(untroubled).map((c) => c.tool_call_id),
      )
    }),
  )
})

test('after closing, the latest response has no open call unless its provider suspended it, and no other message has changed', () => {
  fc.assert(
    fc.property(history, (given) => {
      const closed = closeUnanswered(given, AS_UNKNOWN)
      const latest = given.findLast((m) => m.kind === 'response')
      expect(openCalls(closed).length === 0 || latest?.state === 'suspended').toBe(true)
      expect(closed.slice(0, given.length - 1)).toEqual(given.slice(0, -1))
      expect(closed.length - given.length).toBeLessThanOrEqual(1)
      if (latest?.state === 'suspended') expect(closed).toBe(given)
    }),
  )
})

test('together they make a history that is legal for a model: each call answered once, no answer without its call', () => {
  fc.assert(
    fc.property(history, (given) => {
      const made = [withoutBrokenNatives, integrity, (h: readonly Message[]) => closeOlder(h, AS_UNKNOWN)].reduce<
        readonly Message[]
      >((messages, step) => step(messages), given)
      const all = mergeAdjacent(closeUnanswered(made, AS_UNKNOWN))
      for (const { calls, answers, state, last } of windows(all)) {
        const count = (ids: string[], id: string) => ids.filter((other) => other === id).length
        for (const answer of answers) expect(count(answers, answer)).toBeLessThanOrEqual(count(calls, answer))
        // Only a request behind a response can hold answers to it.
        if (last && state !== 'suspended') expect(new Set(answers)).toEqual(new Set(calls))
      }
    }),
    { numRuns: 300 },
  )
})

test('merging keeps every part: answers first, and within both kinds their order', () => {
  fc.assert(
    fc.property(history, (given) => {
      const merged = mergeAdjacent(given)
      const runs = (messages: readonly Message[], isReturn: boolean) =>
        messages.flatMap((m): (RequestPart | string)[] =>
          m.kind === 'response' ? ['|'] : m.parts.filter((part) => (part.part_kind === 'tool-return') === isReturn),
        )
      for (const isReturn of [true, false]) expect(runs(merged, isReturn)).toEqual(runs(given, isReturn))
      for (const [i, m] of merged.entries()) {
        const next = merged[i + 1]
        if (m.kind !== 'request' || next?.kind !== 'request') continue
        expect(m.instructions !== null && next.instructions !== null && m.instructions !== next.instructions).toBe(true)
      }
    }),
  )
})

test('a cold start shortens long texts of consumed results and nothing else', () => {
  fc.assert(
    fc.property(history, (given) => {
      const latest = given.findLastIndex((m) => m.kind === 'response')
      const cold = coldStart(given)
      expect(cold).toHaveLength(given.length)
      for (const [i, m] of cold.entries()) {
        if (i >= latest) expect(m).toBe(given[i])
        for (const [j, part] of m.parts.entries()) {
          const before = given[i]!.parts[j]!
          if (part.part_kind !== 'tool-return' || before.part_kind !== 'tool-return') expect(part).toEqual(before)
          else if (before.metadata !== null || i >= latest) expect(part).toEqual(before)
          else compareCut(part.content, before.content)
        }
      }
    }),
    { numRuns: 300 },
  )
})

function compareCut(after: JsonValue, before: JsonValue): void {
  if (typeof before === 'string') {
    const points = [...before]
    const text = String(after)
    if (points.length <= 2000) {
      expect(text).toBe(before)
      return
    }
    expect(text.startsWith(points.slice(0, 800).join(''))).toBe(true)
    expect(text.endsWith(points.slice(-800).join(''))).toBe(true)
    expect(text).toContain(String(points.length - 1600))
    expect([...text].length).toBeLessThan(1700)
  } else if (typeof before === 'object' && before !== null) {
    expect(Object.keys(after as object)).toEqual(Object.keys(before))
    for (const key of Object.keys(before))
      compareCut((after as Record<string, JsonValue>)[key]!, (before as Record<string, JsonValue>)[key]!)
  } else expect(after).toBe(before)
}

test('whatever a history holds, a model is shown an answer for every call but those of the last message', () => {
  fc.assert(
    fc.property(history, (given) => {
      const shown = asShown(integrity(given), AS_UNKNOWN)
      for (const { calls, answers, last } of windows(shown)) {
        const atEnd = last && shown.at(-1)?.kind === 'response'
        if (!atEnd) expect([...answers].sort()).toEqual([...calls].sort())
      }
      const own = (messages: readonly Message[]) =>
        messages.flatMap((m) => m.parts.filter((part) => !('outcome' in part && part.outcome === 'interrupted')))
      expect(own(shown)).toHaveLength(own(given).length - (own(given).length - own(integrity(given)).length))
    }),
    { numRuns: 300 },
  )
})
