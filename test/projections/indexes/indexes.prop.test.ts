import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, jsonDigest } from '../../../src/base/index.ts'
import { HarnessState } from '../../../src/messages/index.ts'
import { Folds, foldStream, harnessState, idempotencyKey, indexProjectors, threadStatus } from '../../../src/projections/index.ts'
import { interleave, openIndexLog } from '../../support/index-log.ts'
import { encodeThread, legalThreads, recordsOf } from '../../support/legal-threads.ts'

const { asyncProperty } = fc

describe('the index of legal threads', () => {
  it('agrees with the model and the fold behind every commit', async () => {
    await fc.assert(
      asyncProperty(legalThreads({ maxCommits: 30 }), async (thread) => {
        await using log = await openIndexLog()
        const commits = encodeThread(thread)
        for (const [i, commit] of commits.entries()) {
          await log.append(commit)
          const expected = thread.commits[i]!.expect
          const { state } = foldStream(recordsOf(commits.slice(0, i + 1)))
          const row = log.thread(thread.stream)!
          expect(row).toMatchObject({
            ...{ stream: thread.stream, application: 'app', user: 'u-1', thread: thread.key.thread, kind: 'harness' },
            ...{
              version: state.version,
              status: threadStatus(state),
              opened_at: thread.commits[0]!.time,
              updated_at: thread.commits[i]!.time,
            },
            ...{ status: expected.status, requested_agent: expected.requestedAgent, blocked_revision: expected.blockedRevision },
            ...{ last_end: expected.lastEnd, quarantined_at: null },
            ...{
              run_id: state.run?.runId ?? null,
              invocation_id: state.run?.invocationId ?? null,
              attempt: state.run?.attempt ?? null,
            },
            ...{ agent: state.run?.agent.name ?? null, revision: state.run?.agent.revision ?? null },
            ...{ owner_id: state.run?.owner.id ?? null, owner_kind: state.run?.owner.kind ?? null },
            open_waits: [...expected.waits.values()].filter((status) => status === 'pending').length,
          })
          const waits = log.waits(thread.stream)
          expect(new Map(waits.map((wait) => [wait.continuation_id, wait.status]))).toEqual(expected.waits)
        }
      }),
      { numRuns: 40 },
    )
  })

  it('publishes a request per armed wait, and takes it back when the wait ends unclaimed', async () => {
    await fc.assert(
      asyncProperty(legalThreads(), async (thread) => {
        await using log = await openIndexLog()
        await log.append(...encodeThread(thread))
        const { expect: end } = thread.commits.at(-1)!
        const published = await log.topic('requests')
        const asked = published.filter(({ value }) => !value.cancelled).map(({ value }) => value.continuation_id)
        const taken = published.filter(({ value }) => value.cancelled).map(({ value }) => value.continuation_id)
        expect(asked).toEqual([...end.waits.keys()])
        expect(taken.toSorted()).toEqual(
          [...end.waits]
            .flatMap(([id, status]) => (['cancelled', 'expired', 'abandoned'].includes(status) ? [id] : []))
            .toSorted(),
        )
        expect(published.every(({ key }) => key === thread.stream)).toBe(true)
        const keys = new Map<string, string>()
        for (const { value } of published) {
          expect(keys.get(value.continuation_id) ?? value.idempotency_key).toBe(value.idempotency_key)
          keys.set(value.continuation_id, value.idempotency_key)
        }
        expect(new Set(keys.values()).size).toBe(keys.size === 0 ? 0 : new Set(originsOf(thread)).size)
      }),
      { numRuns: 60 },
    )
  })

  it('publishes at most one checkpoint a commit, each the state at its version', async () => {
    await fc.assert(
      asyncProperty(legalThreads({ maxCommits: 30 }), async (thread) => {
        await using log = await openIndexLog()
        const commits = encodeThread(thread)
        await log.append(...commits)
        const records = recordsOf(commits)
        const published = await log.topic('checkpoints')
        const boundaries = commits.filter(({ records: own }) =>
          own.some(({ event }) => /^run\.(suspended|completed|failed|cancelled)/.test(event.type)),
        )
        expect(published.length).toBe(boundaries.length)
        for (const [i, { value, key, headers }] of published.entries()) {
          const { state } = foldStream(records.slice(0, value.version))
          expect(key).toBe(thread.stream)
          expect(boundaries[i]!.id).toBe(headers['id']!.split(':')[0])
          expect(value.hash).toBe(state.hash)
          expect(HarnessState.parse(value.state).toJSON()).toEqual(harnessState(state).toJSON())
          expect(value.state_digest).toBe(jsonDigest(value.state))
          expect(value.waits).toEqual(
            [...state.waits.values()].filter((wait) => wait.status === 'pending').map((wait) => wait.id),
          )
        }
      }),
      { numRuns: 40 },
    )
  })

  it('comes out the same live, rebuilt, and with folds that forget', async () => {
    await fc.assert(
      asyncProperty(
        fc.tuple(legalThreads({ name: 'a_1' }), legalThreads({ name: 'a_2' }), legalThreads({ name: 'a_3' })),
        async (threads) => {
          const commits = interleave(threads)
          await using live = await openIndexLog()
          await live.append(...commits)
          await using forgetful = await openIndexLog(indexProjectors(new Folds({ threads: 1, events: 1_000_000 })))
          await forgetful.append(...commits)
          await using rebuilt = await openIndexLog([])
          await rebuilt.append(...commits)
          await rebuilt.backend.install(indexProjectors(new Folds({ threads: 2, events: 1_000_000 })))
          const seen = await Promise.all([live, forgetful, rebuilt].map(contents))
          expect(canonicalJson(seen[1]!)).toBe(canonicalJson(seen[0]!))
          expect(canonicalJson(seen[2]!)).toBe(canonicalJson(seen[0]!))
        },
      ),
      { numRuns: 20 },
    )
  })
})

/** The calls waits were made for: (version of the response, call id). A call can wait again after its waits were given up. */
function originsOf(thread: Parameters<typeof encodeThread>[0]): string[] {
  let origin = 'm1'
  const out: string[] = []
  for (const { event } of recordsOf(encodeThread(thread))) {
    if (event!.type === 'model.responded/1') origin = `v${event!.version}/${event!.run_id}`
    if (event!.type === 'run.suspended/1')
      for (const item of event!.data.batch) out.push(idempotencyKey(thread.stream, origin, item.model_call_id))
  }
  return out
}

async function contents(log: Awaited<ReturnType<typeof openIndexLog>>) {
  const rows = (table: string) =>
    log.backend.tables.all(`SELECT * FROM ${table} ORDER BY id`).map((row) => JSON.parse(JSON.stringify(row)))
  const topics = [await log.topic('requests'), await log.topic('checkpoints')]
  // Rebuilt in slices, records of one thread stay in order; those of several may be grouped.
  const grouped = topics.map((records) => records.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)))
  return [
    rows('threads'),
    rows('waits')
      .toSorted((a, b) => (a.continuation_id < b.continuation_id ? -1 : 1))
      .map(({ id: _, ...row }) => row),
    ...grouped,
  ]
}
