import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { JsonValue } from '../../src/base/index.ts'
import { DeferredToolResume, recoveryRetryable } from '../../src/harness/index.ts'
import { defineAgent, defineTool, externalTool, HarnessState, openThreadlog, type RunResult } from '../../src/index.ts'
import {
  type Message,
  openCalls,
  requestMessage,
  responseMessage,
  toolCallPart,
  toolReturnPart,
} from '../../src/messages/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { windows } from '../support/histories.ts'

// A host keeps a state and, beside it, what it accepted and the state does not hold yet (state spec §3.6). However often its runs are cut, in
// whatever mode they recover: each accepted answer enters history once, no answer is made up for it, and nothing runs that was not to run.

const timestamp = '2026-01-01T00:00:00Z'
const kinds = ['far', 'guarded', 'plain', 'safe'] as const
const item = fc.record({
  name: fc.constantFrom(...kinds),
  answered: fc.boolean(),
  value: fc.constantFrom<JsonValue>(1, 'v', null, { v: [1] }),
})
const modes = fc.constantFrom('never' as const, 'declared' as const, 'always' as const)

function cast() {
  const ran: string[] = []
  const input = z.object({ id: z.string() })
  const execute = ({ id }: { id: string }) => ran.push(id)
  const local = (name: string, needsApproval = false) => defineTool({ name, description: name, input, needsApproval, execute })
  const tools = [
    externalTool({ name: 'far', description: 'far', input, provider: 'outside' }),
    local('guarded', true),
    local('plain'),
    recoveryRetryable(local('safe')),
  ]
  const agent = defineAgent({ name: 'a', revision: '1', tools, model: scriptedModel(() => ({ parts: [{ text: 'done' }] })) })
  return { agent, ran }
}

/** A run on a log of its own, cut when its stream has told so many events. */
async function runOnce(
  agent: ReturnType<typeof cast>['agent'],
  o: { state: HarnessState; resume?: DeferredToolResume; mode: 'never' | 'declared' | 'always'; cutAt: number },
) {
  const threads = await openThreadlog()
  const stream = threads.stream(agent, {
    previousState: o.state,
    toolRecovery: o.mode,
    ...(o.resume ? { deferredResume: o.resume } : {}),
  })
  await stream.enter()
  let told = 0
  if (o.cutAt === 0) stream.cancel()
  for await (const event of stream.events()) if (event.type === 'event' && ++told === o.cutAt) stream.cancel()
  const result = stream.delivered as RunResult
  await stream.close()
  const after = { result, state: await stream.exportState(), left: (await stream.pendingDeferredInput()) ?? undefined }
  await threads.close()
  return after
}

test('accepted answers are never lost, never doubled and never made up, however often runs are cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(item, { minLength: 1, maxLength: 4 }),
      fc.array(fc.tuple(modes, fc.integer({ min: 0, max: 9 })), { maxLength: 3 }),
      async (items, cuts) => {
        // Only what the outside answers is open: a resume covers every open call of its response.
        const calls = items.map((one, i) => ({
          ...one,
          id: `c${i}`,
          answered: one.answered || one.name === 'plain' || one.name === 'safe',
        }))
        const history: Message[] = [
          responseMessage({
            parts: calls.map(({ id, name }) => toolCallPart({ tool_name: name, tool_call_id: id, args: { id } })),
            timestamp,
          }),
          ...calls
            .filter((one) => one.answered)
            .map(({ id, name }) =>
              requestMessage({
                parts: [toolReturnPart({ tool_name: name, tool_call_id: id, content: 'before', timestamp })],
                timestamp,
              }),
            ),
        ]
        const waiting = calls.filter((one) => !one.answered && (one.name === 'far' || one.name === 'guarded'))
        fc.pre(waiting.length > 0)
        const request = ({ id, name }: (typeof calls)[number]) => {
          const call = { tool_call_id: id, tool_name: name, args: { id } }
          return { ...call, identity: `tool/${name === 'far' ? 'client' : 'local'}/${name}` }
        }
        const of = (name: string) => waiting.filter((one) => one.name === name)
        let resume: DeferredToolResume | undefined = DeferredToolResume.parse({
          requests: { calls: of('far').map(request), approvals: of('guarded').map(request) },
          results: {
            calls: Object.fromEntries(of('far').map((one) => [one.id, { value: one.value }])),
            approvals: Object.fromEntries(of('guarded').map((one) => [one.id, true])),
          },
        })
        let state = HarnessState.of({ threadId: 'thr_answers', messageHistory: history })
        const { agent, ran } = cast()
        let status = ''
        let first = true
        for (const [mode, cutAt] of [...cuts, ['never', Number.POSITIVE_INFINITY] as const]) {
          const before = ran.length
          const after = await runOnce(agent, { state, mode, cutAt, ...(resume ? { resume } : {}) })
          expect(['completed', 'cancelled', 'suspended']).toContain(after.result.status)
          state = HarnessState.parse(after.state.toText())
          status = after.result.status
          const open = openCalls(state.messageHistory).map((call) => call.tool_call_id)
          // What is not in history is still with the host, and nothing else is.
          const kept = after.left?.results
          for (const { id, name } of waiting)
            expect([id, open.includes(id)]).toEqual([
              id,
              Object.hasOwn((name === 'far' ? kept?.calls : kept?.approvals) ?? {}, id),
            ])
          // A permission is for the run it was given to.
          if (first) first = false
          else expect(ran).toHaveLength(before)
          resume = after.left && new DeferredToolResume({ ...after.left, recovery: true })
        }
        expect(status).toBe('completed')
        const answers = state.messageHistory.flatMap((m) =>
          m.kind === 'request' ? m.parts.flatMap((part) => (part.part_kind === 'tool-return' ? [part] : [])) : [],
        )
        for (const one of calls) {
          const own = answers.filter((part) => part.tool_call_id === one.id)
          expect([one.id, own.length]).toEqual([one.id, 1])
          if (one.answered) expect(own[0]).toMatchObject({ content: 'before', outcome: 'success' })
          else if (one.name === 'far') expect([own[0]?.content, own[0]?.outcome]).toEqual([one.value, 'success'])
        }
        for (const one of of('guarded')) expect(ran.filter((id) => id === one.id).length).toBeLessThanOrEqual(1)
        for (const id of ran) expect(of('guarded').map((one) => one.id)).toContain(id)
        for (const { answers: given } of windows(state.messageHistory)) expect(new Set(given).size).toBe(given.length)
      },
    ),
    { numRuns: 100 },
  )
})
