import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, Payload } from '../../src/base/index.ts'
import { decodeEvent, type LogEvent } from '../../src/events/index.ts'
import { HarnessState } from '../../src/messages/index.ts'
import {
  decodeState,
  encodeState,
  evolve,
  findWait,
  foldStream,
  harnessState,
  harnessStateJson,
  initial,
  Proposal,
  stateHash,
  type ThreadState,
  threadStatus,
} from '../../src/projections/index.ts'
import { ACTOR, choices, encodeThread, type LegalThread, legalThreads, recordsOf, threadOf } from '../support/legal-threads.ts'

const eventsOf = (thread: LegalThread) => recordsOf(encodeThread(thread)).map((record) => record.event!)
const text = (state: ThreadState): string => canonicalJson(encodeState(state))
const reread = (state: ThreadState): ThreadState => decodeState(Payload.fromBytes(Payload.of(encodeState(state)).bytes).value)

interface Branch {
  events: LogEvent[]
  states: ThreadState[]
}

/** Every state of the thread, the one before its first event included. */
function statesOf(thread: LegalThread): ThreadState[] {
  const states = [initial]
  for (const event of eventsOf(thread)) states.push(evolve(states[states.length - 1]!, event))
  return states
}

describe('the fold of a legal thread', () => {
  it('follows the model behind every commit', () => {
    fc.assert(
      fc.property(legalThreads(), (thread) => {
        const states = statesOf(thread)
        let version = 0
        for (const { drafts, expect: expected } of thread.commits) {
          const state = states[(version += drafts.length)]!
          expect(state.version).toBe(version)
          expect(threadStatus(state)).toBe(expected.status)
          expect(state.history.length).toBe(expected.messages)
          expect(state.requested[0]?.agent ?? null).toBe(expected.requestedAgent)
          expect(state.run?.blocked?.revision ?? null).toBe(expected.blockedRevision)
          for (const [id, status] of expected.waits) expect(findWait(state, id)?.status).toBe(status)
        }
      }),
    )
  })

  it('goes on from a snapshot at any cut as if there were none', () => {
    fc.assert(
      fc.property(legalThreads({ maxCommits: 25 }), (thread) => {
        const events = eventsOf(thread)
        const states = statesOf(thread)
        const end = text(states[states.length - 1]!)
        for (const [cut, state] of states.entries()) {
          const restored = reread(state)
          expect(text(restored)).toBe(text(state))
          const resumed = events.slice(cut).reduce(evolve, restored)
          expect(text(resumed)).toBe(end)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('is the same live, from provisional events, and in replay, from decoded ones', () => {
    fc.assert(
      fc.property(legalThreads(), (thread) => {
        const { stream } = thread
        let live = initial
        let replayed = initial
        for (const commit of encodeThread(thread)) {
          const legal = thread.commits.find((candidate) => candidate.time === commit.records[0]!.event.time)!
          const context = { stream, now: legal.time, actor: ACTOR, runId: legal.runId, attempt: legal.attempt }
          // The log gives an event its hash; the fold keeps only that of the last one.
          live = { ...Proposal.on(live, context).add(...legal.drafts).state, hash: commit.records.at(-1)!.hash }
          for (const record of commit.records) replayed = evolve(replayed, decodeEvent(record.bytes))
          expect(stateHash(live)).toBe(stateHash(replayed))
        }
      }),
    )
  })

  it('leaves every earlier state as it was', () => {
    fc.assert(
      fc.property(legalThreads(), (thread) => {
        let state = initial
        const before: [ThreadState, string][] = []
        for (const event of eventsOf(thread)) {
          before.push([freeze(state), text(state)])
          state = evolve(state, event)
        }
        for (const [earlier, written] of before) expect(text(earlier)).toBe(written)
      }),
    )
  })

  it('branches from a shared state without one branch disturbing the other', () => {
    fc.assert(
      fc.property(choices(15), choices(10), choices(10), (stem, left, right) => {
        const [a, b] = [threadOf([...stem, ...left]), threadOf([...stem, ...right])].map((thread) => ({
          events: eventsOf(thread),
          states: statesOf(thread),
        })) as [Branch, Branch]
        const at = eventsOf(threadOf(stem)).length
        const root = a.states[at]!
        const written = text(root)
        let [one, two] = [root, root]
        for (let i = at; i < Math.max(a.events.length, b.events.length); i++) {
          if (a.events[i]) one = evolve(one, a.events[i]!)
          if (b.events[i]) two = evolve(two, b.events[i]!)
        }
        expect(text(one)).toBe(text(a.states.at(-1)!))
        expect(text(two)).toBe(text(b.states.at(-1)!))
        expect(text(root)).toBe(written)
      }),
    )
  })

  it('exports a state that is one, with nothing left to normalise', () => {
    fc.assert(
      fc.property(legalThreads(), (thread) => {
        const { state } = foldStream(recordsOf(encodeThread(thread)))
        const exported = harnessState(state)
        const json = exported.toJSON()
        expect(HarnessState.parse(exported.toText()).toJSON()).toEqual(json)
        expect(canonicalJson(harnessStateJson(state))).toBe(canonicalJson(json))
        expect(exported.threadId).toBe(thread.key.thread)
        expect(exported.messageHistory.length).toBe(state.history.length)
      }),
    )
  })
})

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const item of value instanceof Map ? value.values() : Object.values(value)) freeze(item)
  return value
}
