import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type ConflictReason,
  ContinuationFailure,
  externalTool,
  isThreadlogError,
  openThreadlog,
  type ThreadlogError,
} from '../../src/index.ts'
import { agentOf, calls, says } from '../support/agents.ts'

const pay = externalTool({
  ...{ name: 'pay', description: 'Pays', provider: 'bank' },
  input: z.object({ cents: z.int() }),
  result: z.object({ reference: z.string() }),
})

const reasonOf = async (work: Promise<unknown>): Promise<ConflictReason | string> => {
  try {
    await work
  } catch (error) {
    if (isThreadlogError(error, 'continuation_conflict')) return String((error as ThreadlogError).details['reason'])
    if (isThreadlogError(error)) return error.code
    throw error
  }
  return 'none'
}

async function suspended() {
  const agent = agentOf([calls(['c1', 'pay', { cents: 5 }]), says('Paid.')], [pay])
  const threads = await openThreadlog({ agents: [agent] })
  const { invocationId, thread } = await threads.run(agent, { input: 'Pay.' })
  const bank = threads.continuations('bank')
  const [pair] = await bank.listPending()
  if (!pair) throw new Error('no wait')
  const own = { userId: thread.user, sessionId: thread.thread, runId: invocationId }
  return { threads, agent, bank, pair, own, thread: thread.thread }
}

const complete = ({ pair, own }: Awaited<ReturnType<typeof suspended>>, result: unknown) => ({
  ...own,
  externalId: pair.externalId,
  schemaId: pair.record.schemaId,
  result,
  validate: (value: unknown) => value,
})

describe("waits of threadlog's own runs", () => {
  it('are listed, looked up, read and completed; the run goes on', async () => {
    const s = await suspended()
    const { bank, pair, own, threads } = s
    expect(pair.record).toMatchObject({ status: 'pending', ready: true, revision: 1, provider: 'bank', capability: 'tool.call' })
    expect((await bank.lookup({ externalId: pair.externalId }))?.record.continuationId).toBe(pair.record.continuationId)
    const done = await bank.complete(complete(s, { reference: 'r-1' }))
    expect(done).toMatchObject({ status: 'completed', result: { reference: 'r-1' }, revision: 2 })
    expect((await threads.run(s.agent, { thread: s.thread })).output).toBe('Paid.')
    const { continuationId } = pair.record
    expect(await bank.get({ ...own, continuationId })).toMatchObject({ status: 'claimed', revision: 3 })
    await threads.close()
  })

  it('are checked by their tool too, and tell whether an earlier outcome is the same', async () => {
    const s = await suspended()
    const { bank, threads } = s
    expect(await reasonOf(bank.complete(complete(s, { reference: 7 })))).toBe('continuation_invalid')
    await bank.complete(complete(s, { reference: 'r-1' }))
    const again = await bank.complete(complete(s, { reference: 'r-1' })).catch((error) => error.details)
    expect(again).toMatchObject({ reason: 'already_resolved', same: true })
    const other = await bank.complete(complete(s, { reference: 'r-2' })).catch((error) => error.details)
    expect(other).toMatchObject({ reason: 'already_resolved', same: false })
    await threads.close()
  })

  it('are armed and claimed by threadlog alone; a cancel ends their run', async () => {
    const { bank, pair, own, threads, thread } = await suspended()
    const { continuationId, revision } = pair.record
    expect(await reasonOf(bank.arm(pair.record))).toBe('host_managed')
    expect(await reasonOf(bank.claim({ ...own, continuationId, expectedRevision: revision }))).toBe('host_managed')
    const failure = new ContinuationFailure({ code: 'user_cancelled' })
    expect(await bank.cancel({ record: pair.record, failure })).toMatchObject({
      status: 'failed',
      failure: { code: 'user_cancelled' },
    })
    expect((await threads.thread(thread).state()).messageHistory.at(-1)).toMatchObject({ state: 'interrupted' })
    expect(await bank.listPending()).toEqual([])
    await threads.close()
  })

  it('are nobody else’s: another provider and another run learn nothing', async () => {
    const s = await suspended()
    const { threads, pair, own } = s
    const other = threads.continuations('post')
    expect(await other.lookup({ externalId: pair.externalId })).toBeNull()
    expect(await reasonOf(other.complete(complete(s, { reference: 'r' })))).toBe('unknown')
    expect(await reasonOf(s.bank.complete({ ...complete(s, { reference: 'r' }), runId: 'run-other' }))).toBe('unknown')
    expect(await s.bank.getPending({ ...own, userId: 'somebody', continuationId: pair.record.continuationId })).toBeNull()
    expect(() => threads.continuations('human')).toThrow()
    await threads.close()
  })
})
