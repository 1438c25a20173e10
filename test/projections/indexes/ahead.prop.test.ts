import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ProjectorTx } from '../../../src/log/index.ts'
import { emptyFold, type Folded, Folds, foldStream, Proposal, stateHash } from '../../../src/projections/index.ts'
import { ACTOR, encodeAt, type LegalThread, legalThreads, recordsOf } from '../../support/legal-threads.ts'

const noReads = {
  get: () => undefined,
  read: () => {
    throw new Error('the log was read')
  },
} as unknown as ProjectorTx

/** The thread as writers decide it: each commit proposed on the fold of the last one, some of them once in vain before. */
function* decided({ stream, commits }: LegalThread, folds: Folds, inVain: (i: number) => boolean) {
  let folded: Folded = emptyFold
  for (const [i, commit] of commits.entries()) {
    const { time: now, runId, attempt } = commit
    const propose = () => Proposal.on(folded.state, { stream, now, actor: ACTOR, runId, attempt }).add(...commit.drafts)
    const { drafts, states } = propose()
    const encoded = encodeAt(stream, folded.head, { ...commit, drafts })
    const records = recordsOf([encoded])
    const ahead = states && { hash: records.at(-1)?.hash ?? '', states }
    folds.offer(stream, folded, ahead)
    // A transaction that is rolled back, and decided again.
    if (inVain(i)) {
      folds.steps(noReads, records)
      folds.offer(stream, folded, { hash: records.at(-1)?.hash ?? '', states: propose().states ?? [] })
    }
    const [thread] = folds.steps(noReads, records)
    if (!thread) return
    folded = thread.after
    yield { records, thread }
  }
}

it('what was folded when it was decided is what folding the log gives, behind every event', () => {
  fc.assert(
    fc.property(legalThreads({ maxCommits: 20 }), fc.nat(3), (thread, every) => {
      const folds = new Folds()
      const all = []
      for (const { records, thread: given } of decided(thread, folds, (i) => every > 0 && i % every === 0)) {
        for (const [i, record] of records.entries()) {
          all.push(record)
          const { state, head } = foldStream(all)
          expect(given.steps[i]?.after.head).toEqual(head)
          expect(given.steps[i]?.after.state.hash).toBe(head.hash)
          expect(stateHash(given.steps[i]?.after.state ?? emptyFold.state)).toBe(stateHash(state))
          expect(given.steps[i]?.record.position).toEqual(record.position)
        }
      }
    }),
    { numRuns: 60 },
  )
})

it('a decision that another event came before is folded anew', () => {
  fc.assert(
    fc.property(legalThreads({ maxCommits: 8 }), (thread) => {
      const folds = new Folds()
      const records = recordsOf(thread.commits.length > 0 ? [encodeAt(thread.stream, emptyFold.head, thread.commits[0]!)] : [])
      folds.offer(thread.stream, emptyFold, { hash: 'f'.repeat(64), states: records.map(() => emptyFold.state) })
      const [given] = folds.steps(noReads, records)
      expect(stateHash(given!.after.state)).toBe(stateHash(foldStream(records).state))
    }),
    { numRuns: 20 },
  )
})
