import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Agent, defineAgent, defineCapability, defineTool, openThreadlog } from '../../src/index.ts'
import { openMemoryLog } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { messageHistory, type ThreadState } from '../../src/projections/index.ts'
import { calls, eventsOf, says } from '../support/agents.ts'
import { commitsOf } from '../support/recorded/recorded-log.ts'

// Wherever a log is cut, and however often, what capabilities wrote agrees with what the log holds of the things they wrote about.

const Tally = z.object({ responses: z.int(), results: z.int() })
const TALLY = 'acme.tally'

/** An agent that makes some calls a step, and counts its responses and results; now and then the history is shortened. */
function tallying(steps: readonly number[], forgets: boolean): Agent {
  const tally = defineCapability({
    name: TALLY,
    state: { version: '1', schema: Tally },
    beforeModel: (messages) => (forgets && messages.length > 3 ? messages.slice(-2) : undefined),
    afterModel(_, { state }) {
      const { responses = 0, results = 0 } = state.read() ?? {}
      state.write({ responses: responses + 1, results })
    },
    afterTool(_, __, { state }) {
      const { responses = 0, results = 0 } = state.read() ?? {}
      state.write({ responses, results: results + 1 })
    },
  })
  const work = defineTool({ name: 'work', description: 'w', input: z.object({}), recovery: 'retryable', execute: () => ({}) })
  let made = 0
  const model = scriptedModel((prompt) => {
    const results = JSON.stringify(prompt).match(/"type":"tool-result"/g)?.length ?? 0
    const size = steps[made % steps.length] ?? 0
    const more = size > 0 && results < 6 && made < 12
    return more
      ? calls(...Array.from({ length: size }, (): [string, string, Record<string, unknown>] => [`c${made++}`, 'work', {}]))
      : says('done')
  })
  return defineAgent({ name: 'tallying', revision: '1', model, tools: [work], capabilities: [tally] })
}

const tallyOf = (state: ThreadState) => Tally.parse(state.capabilities.get(TALLY)?.data.value ?? { responses: 0, results: 0 })

test('what hooks write is there exactly with what they write about, for every prefix and through every recovery', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 3 }),
      async (steps, forgets, cuts) => {
        let log = await openMemoryLog()
        for (const cut of [1, ...cuts]) {
          const threads = await openThreadlog({ log })
          const agent = tallying(steps, forgets)
          const before = await threads
            .thread('t_1')
            .state()
            .catch(() => undefined)
          const result = await threads.run(agent, before ? { thread: 't_1' } : { thread: 't_1', input: 'go' })
          expect(result.status).toBe('completed')
          const events = await eventsOf(threads, 't_1')
          const { stream } = threads.thread('t_1')
          const seen = { responses: 0, results: 0 }
          for (const [i, { event }] of events.entries()) {
            if (event?.type === 'model.responded/1') seen.responses++
            if (event?.type === 'tool.settled/1' && event.data.settlement === 'returned') seen.results++
            const isWhole = event!.commit.index === event!.commit.size - 1
            if (isWhole) expect(tallyOf((await threads.store.at(stream, i + 1)).state)).toEqual(seen)
          }
          expect(messageHistory((await threads.store.fold(stream)).state).at(-1)?.kind).toBe('response')
          await threads.close()
          const commits = commitsOf(events)
          const next = await openMemoryLog()
          for (const commit of commits.slice(0, Math.max(1, Math.floor(cut * commits.length))))
            expect((await next.events.append(commit)).accepted).toBe(true)
          await log.close()
          log = next
        }
        await log.close()
      },
    ),
    { numRuns: 60 },
  )
}, 60_000)
