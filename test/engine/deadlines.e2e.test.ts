import { expect, test } from 'vitest'
import { openThreadlog } from '../../src/index.ts'
import { returnsOf } from '../support/agents.ts'
import { checkStream } from '../support/processes/checks.ts'
import { Child } from '../support/processes/child.ts'
import { places } from '../support/processes/place.ts'
import { eventsOf } from '../support/processes/streams.ts'
import { script, workerAgent } from '../support/processes/worker.ts'

const place = places()

test.each([
  ['before the expiry is in the log', 'continuation.expired/1', false],
  ['behind the expiry', 'continuation.expired/1', true],
] as const)(
  'an engine killed %s: the next one records it if nobody has, and goes on with the run once',
  async (_, at, after) => {
    const files = { ...place(), deadlines: { desk: 50 } }
    await using threads = await openThreadlog({ log: files.log, application: 'shop', agents: [workerAgent(files)] })
    const run = await threads.start({ agent: 'worker', thread: 'late_1', input: script([{ id: 'c1', name: 'ask' }], 'done') })
    const dying = await Child.start('gated-engine.ts', { ...files, at, after })
    await dying.must('reached')
    await dying.kill()
    await threads.serve({ sweepMs: 10 })
    const result = await run.result()
    expect([result.status, returnsOf(result.state?.messageHistory ?? [])]).toEqual(['completed', [['c1', 'failed']]])
    const { stream } = threads.thread('late_1')
    const types = (await eventsOf(threads.backend, stream)).map(({ type }) => type)
    expect(types.filter((type) => type === 'continuation.expired/1')).toHaveLength(1)
    await checkStream(threads.store, stream)
  },
  60_000,
)
