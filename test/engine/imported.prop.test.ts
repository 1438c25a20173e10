import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { withoutBrokenNatives } from '../../src/harness/history/index.ts'
import {
  defineAgent,
  defineTool,
  HarnessState,
  isThreadlogError,
  openThreadlog,
  type RunOptions,
  type RunResult,
  type Threadlog,
} from '../../src/index.ts'
import { openCalls } from '../../src/messages/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { history, windows } from '../support/histories.ts'

// Any history that a state can hold may be run on, in every mode of recovery: what comes of it is legal for a model, what must not run does not
// run, and what was exported is where the next run goes on.

let threads: Threadlog
beforeAll(async () => {
  threads = await openThreadlog()
})
afterAll(() => threads.close())

let n = 0
function cast() {
  const ran: { tool: string; key: string }[] = []
  const tool = (name: string, recovery?: 'retryable') =>
    defineTool({
      ...{ name, description: name, input: z.object({}), recovery },
      execute: (_, { idempotencyKey }) => ran.push({ tool: name, key: idempotencyKey }),
    })
  const model = scriptedModel(() => ({ parts: [{ text: 'done' }] }))
  const agent = defineAgent({ name: 'any', revision: '1', model, tools: [tool('t'), tool('u', 'retryable')] })
  return { ran, model, agent }
}

/** Every call of a prompt is answered before the model speaks again, and nothing else is. */
function checkPrompt(prompt: LanguageModelV4Prompt): void {
  let open: string[] = []
  for (const message of prompt) {
    if (message.role === 'assistant') {
      expect(open).toEqual([])
      open = message.content.flatMap((part) => (part.type === 'tool-call' && !part.providerExecuted ? [part.toolCallId] : []))
    } else if (message.role === 'tool')
      for (const part of message.content) {
        if (part.type !== 'tool-result') continue
        const at = open.indexOf(part.toolCallId)
        expect([part.toolCallId, at >= 0]).toEqual([part.toolCallId, true])
        open.splice(at, 1)
      }
  }
  expect(open).toEqual([])
}

const options = fc.record({
  toolRecovery: fc.constantFrom('never', 'declared', 'always'),
  input: fc.constantFrom(undefined, 'more'),
}) as fc.Arbitrary<Pick<RunOptions, 'toolRecovery' | 'input'>>

test('any history, run on in any mode', async () => {
  await fc.assert(
    fc.asyncProperty(history, options, async (messageHistory, o) => {
      // A response that its provider suspended is not ours to recover: the provider goes on with it.
      fc.pre(withoutBrokenNatives(messageHistory).findLast((m) => m.kind === 'response')?.state !== 'suspended')
      const thread = `thr_any${n++}`
      const previousState = HarnessState.of({ threadId: thread, messageHistory })
      const before = previousState.toText()
      const { agent, model, ran } = cast()
      let result: RunResult
      try {
        result = await threads.run(agent, { ...o, previousState })
      } catch (error) {
        if (!isThreadlogError(error)) throw error
        expect([error.code, messageHistory.length]).toEqual(['refused', 0])
        return
      }
      expect(previousState.toText()).toBe(before)
      if (result.status !== 'completed') expect([result.status, result.failure?.code]).toEqual(['failed', 'agent_run_failed'])
      for (const prompt of model.prompts) checkPrompt(prompt)

      // A cut response of broken native calls only is none.
      const open = openCalls(withoutBrokenNatives(messageHistory)).filter(
        (call, i, all) => all.findIndex((c) => c.tool_call_id === call.tool_call_id) === i,
      )
      const allowed =
        o.toolRecovery === 'never' ? [] : open.filter((call) => o.toolRecovery === 'always' || call.tool_name === 'u')
      expect(ran.map(({ tool }) => tool).sort()).toEqual(allowed.map((call) => call.tool_name).sort())
      expect(new Set(ran.map(({ key }) => key)).size).toBe(ran.length)

      const state = result.state as HarnessState
      expect(openCalls(state.messageHistory)).toEqual([])
      if (model.requests.length > 0)
        for (const { calls, answers } of windows(state.messageHistory)) {
          const count = (ids: string[], id: string) => ids.filter((other) => other === id).length
          for (const answer of answers) expect(count(answers, answer)).toBeLessThanOrEqual(count(calls, answer))
        }
      expect(HarnessState.parse(state.toText()).toText()).toBe(state.toText())

      const again = cast()
      const next = await threads.run(again.agent, { toolRecovery: 'always', input: 'and?', previousState: state })
      expect(next.status).toBe('completed')
      expect(again.ran).toEqual([])
      for (const prompt of again.model.prompts) checkPrompt(prompt)
    }),
    { numRuns: 150 },
  )
})
