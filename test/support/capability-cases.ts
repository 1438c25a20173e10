import { expect } from 'vitest'
import { z } from 'zod'
import {
  type Capability,
  type CapabilityHooks,
  defineAgent,
  defineCapability,
  defineTool,
  openThreadlog,
} from '../../src/index.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { type Message, requestMessage, toolReturnPart, userPromptPart } from '../../src/messages/index.ts'
import { type Script, scriptedModel } from '../../src/models/index.ts'
import { calls, eventsOf, returnsOf, says, typesOf } from './agents.ts'
import { caughtBy } from './refusals.ts'

// What holds of capabilities on every log: the cases of `capabilities.unit` and `capabilities.kafka`.

const Counter = z.object({ asked: z.int(), answered: z.int(), begun: z.int(), ended: z.int() })
const NAME = 'acme.counter'
const AT = '2026-01-01T00:00:00Z'
const ZERO = { asked: 0, answered: 0, begun: 0, ended: 0 }

/** Counts what its hooks see; each is told to `seen`. */
export function counter(seen: string[] = [], version = '1'): Capability {
  const count = (what: keyof typeof ZERO, { state }: Parameters<NonNullable<CapabilityHooks<typeof ZERO>['beforeModel']>>[1]) => {
    const now = state.read() ?? ZERO
    state.write({ ...now, [what]: now[what] + 1 })
  }
  return defineCapability({
    name: NAME,
    instructions: ['Count.'],
    state: { version, schema: Counter },
    beforeModel: (messages, context) => {
      seen.push(`beforeModel ${messages.length}`)
      count('asked', context)
      return undefined
    },
    afterModel: (response, context) => {
      seen.push(`afterModel ${response.parts.map((part) => part.part_kind)}`)
      count('answered', context)
    },
    beforeTool: ({ tool, callId }, context) => {
      seen.push(`beforeTool ${tool} ${callId}`)
      count('begun', context)
    },
    afterTool: ({ callId }, { settlement, content }, context) => {
      seen.push(`afterTool ${callId} ${settlement} ${JSON.stringify(content)}`)
      count('ended', context)
    },
  })
}

const plain = (execute: () => unknown = () => ({ did: 1 })) =>
  defineTool({ name: 'plain', description: 'plain', input: z.object({}), execute })

const agentWith = (script: Script, capabilities: readonly Capability[], tools = [plain()]) =>
  defineAgent({ name: 'agent', revision: '1', model: scriptedModel(script), system: 'Be brief.', tools, capabilities })

const once = [calls(['c1', 'plain', {}]), says('done')]
const text = (content: string) => requestMessage({ parts: [userPromptPart({ content, timestamp: AT })], timestamp: AT })
const hook = (hooks: CapabilityHooks): Capability => defineCapability({ name: 'acme.hook', ...hooks })
const contents = (messages: readonly Message[]) =>
  messages.flatMap((message) => message.parts.flatMap((part) => ('content' in part ? [String(part.content)] : [])))

export const capabilityCases: Record<string, (log: LogBackend) => Promise<void>> = {
  'instructions stand behind the system prompt, hooks run in order, and state is committed with what it counts': async (log) => {
    const seen: string[] = []
    await using threads = await openThreadlog({ log })
    const result = await threads.run(agentWith(once, [counter(seen)]), { thread: 'thread_a', input: 'go' })
    expect(result.status).toBe('completed')
    expect(contents(result.allMessages()).slice(0, 3)).toEqual(['Be brief.', 'Count.', 'go'])
    expect(seen).toEqual([
      'beforeModel 1',
      'afterModel tool-call',
      'beforeTool plain c1',
      'afterTool c1 returned {"did":1}',
      'beforeModel 3',
      'afterModel text',
    ])
    expect(result.state?.entries[NAME]).toEqual({ version: '1', data: { asked: 2, answered: 2, begun: 1, ended: 1 } })
    // Each value stands in the commit of the event that it counts.
    const events = (await eventsOf(threads, 'thread_a')).map(({ event }) => event!)
    for (const written of events.filter(({ type }) => type === 'capability.written/1')) {
      const beside = events.filter(({ commit }) => commit.id === written.commit.id).map(({ type }) => type)
      expect(beside.some((type) => type === 'model.responded/1' || type === 'tool.settled/1')).toBe(true)
    }
  },

  'a later run and a fork go on from the state; a namespace of another version is refused and kept': async (log) => {
    await using threads = await openThreadlog({ log })
    await threads.run(agentWith(once, [counter()]), { thread: 'thread_a', input: 'go' })
    const fork = await threads.thread('thread_a').fork({ thread: 'thread_b' })
    for (const thread of ['thread_a', 'thread_b']) {
      const { state } = await threads.run(agentWith([says('more')], [counter()]), { thread, input: 'again' })
      expect(state?.entries[NAME]?.data).toEqual({ asked: 3, answered: 3, begun: 1, ended: 1 })
    }
    const other = agentWith([says('never')], [counter([], '2')])
    const error = await caughtBy(threads.run(other, { thread: fork.key.thread, input: 'again' }))
    expect(error).toMatchObject({ code: 'capability_failed', cause: { code: 'capability_state_version_unsupported' } })
    const state = await fork.state()
    expect(state.entries[NAME]).toEqual({ version: '1', data: { asked: 3, answered: 3, begun: 1, ended: 1 } })
    expect((await threads.run(agentWith([says('fine')], []), { thread: 'thread_b', input: 'on' })).state?.entries[NAME]).toEqual(
      state.entries[NAME],
    )
  },

  'tools of a capability are offered, and write namespaces together with their outcome': async (log) => {
    await using threads = await openThreadlog({ log })
    const note = defineTool({
      ...{ name: 'note', description: 'notes', input: z.object({ text: z.string() }) },
      execute({ text }, { capabilities }) {
        const schema = z.array(z.string())
        const notes = capabilities.read({ id: 'acme.notes', version: '1', schema }) ?? []
        capabilities.write({ id: 'acme.notes', version: '1', value: [...notes, text], schema })
        return notes.length
      },
    })
    const notes = defineCapability({ name: 'acme.notes', tools: [note] })
    const script = [calls(['c1', 'note', { text: 'a' }]), calls(['c2', 'note', { text: 'b' }]), says('done')]
    const { state } = await threads.run(agentWith(script, [notes]), { thread: 'thread_a', input: 'go' })
    expect(state?.entries['acme.notes']).toEqual({ version: '1', data: ['a', 'b'] })
    const types = await typesOf(threads, 'thread_a')
    for (const [i, type] of types.entries()) if (type === 'capability.written') expect(types[i + 1]).toBe('tool.settled')
  },

  'a history that a hook shortens is what the model reads from then on, and what it used stays counted': async (log) => {
    await using threads = await openThreadlog({ log })
    const asked: number[] = []
    const model = scriptedModel((prompt) => {
      asked.push(prompt.length)
      return { ...says(`answer ${asked.length}`), usage: { input: 100, output: 10 } }
    })
    const compacting = hook({
      beforeModel: (messages) => (messages.length > 3 ? [text('Summary of what was said.'), messages.at(-1)!] : undefined),
    })
    const agent = defineAgent({ name: 'agent', revision: '1', model, capabilities: [compacting] })
    const runs = []
    for (const input of ['one', 'two', 'three']) runs.push(await threads.run(agent, { thread: 'thread_a', input }))
    // Requests beside each other are one message of a prompt.
    expect(asked).toEqual([1, 3, 1])
    expect(contents(runs[2]!.allMessages())).toEqual(['Summary of what was said.', 'three', 'answer 3'])
    expect(contents(runs[2]!.newMessages())).toEqual(['three', 'answer 3'])
    expect(runs[2]!.usage).toMatchObject({ requests: 1, inputTokens: 100, outputTokens: 10 })
    const revised = (await eventsOf(threads, 'thread_a')).flatMap(({ event }) =>
      event?.type === 'history.revised/1' ? event.data : [],
    )
    expect(revised.map(({ why }) => why)).toEqual(['compaction'])
    // What stood there is in the log.
    const before = await threads.thread('thread_a').state({ at: runs[1]!.version })
    expect(contents(before.messageHistory)).toEqual(['one', 'answer 1', 'two', 'answer 2'])
  },

  'a run that compacts its own messages still counts them against its limits': async (log) => {
    await using threads = await openThreadlog({ log })
    const model = scriptedModel((prompt) => ({
      ...(prompt.length > 100 ? says('done') : calls([`c${prompt.length}-${Math.random()}`, 'plain', {}])),
      usage: { input: 100 },
    }))
    const forgetful = hook({ beforeModel: () => [text('Go on.')] })
    const agent = defineAgent({ name: 'agent', revision: '1', model, tools: [plain()], capabilities: [forgetful] })
    const result = await threads.run(agent, { thread: 'thread_a', input: 'go', usageLimits: { inputTokens: 450 } })
    expect(result).toMatchObject({ status: 'failed', failure: { code: 'usage_limit_exceeded' } })
    expect(result.usage).toMatchObject({ requests: 5, inputTokens: 500 })
  },

  'a history that no model takes is refused, and the thread stays as it was': async (log) => {
    await using threads = await openThreadlog({ log })
    const bad: Record<string, (messages: readonly Message[]) => unknown> = {
      empty: () => [],
      'ends with a response': (messages) => messages.slice(0, -1),
      'an answer without a call': (messages) => [messages.at(-1)!],
      'a call without an answer': (messages) => [...messages.slice(0, -1), text('no answer')],
      'an answer twice': (messages) => [...messages, messages.at(-1)!],
      'no message': () => ['text'],
      'no list': () => 'text',
      'two answers in one': (messages) => {
        const again = toolReturnPart({ tool_name: 'plain', tool_call_id: 'c1', content: 2, timestamp: '2026-01-01T00:00:00Z' })
        return [...messages.slice(0, -1), { ...messages.at(-1)!, parts: [...messages.at(-1)!.parts, again] }]
      },
    }
    for (const [i, change] of Object.values(bad).entries()) {
      const thread = `thread_${i}`
      const capability = hook({ beforeModel: (messages) => (messages.length > 1 ? (change(messages) as Message[]) : undefined) })
      const error = await caughtBy(threads.run(agentWith(once, [capability]), { thread, input: 'go' }))
      expect(error, Object.keys(bad)[i]).toMatchObject({ code: 'capability_failed' })
      expect(await typesOf(threads, thread)).not.toContain('history.revised')
      expect((await threads.thread(thread).state()).messageHistory).toHaveLength(3)
    }
  },

  'a hook that throws ends the run, after what it came after is recorded': async (log) => {
    await using threads = await openThreadlog({ log })
    const boom = () => {
      throw new RangeError('secret text')
    }
    const hooks: [keyof CapabilityHooks, returns: [string, string][], last: string[]][] = [
      ['beforeModel', [], ['run.failed']],
      ['afterModel', [['c1', 'failed']], ['model.responded', 'tool.settled', 'request.composed', 'run.failed']],
      ['beforeTool', [['c1', 'failed']], ['tool.settled', 'request.composed', 'run.failed']],
      ['afterTool', [['c1', 'success']], ['tool.settled', 'request.composed', 'run.failed']],
    ]
    for (const [name, returns, last] of hooks) {
      let ran = 0
      const agent = agentWith(once, [hook({ [name]: boom })], [plain(() => ++ran)])
      const thread = `thread_${name.toLowerCase()}`
      const error = await caughtBy(threads.run(agent, { thread, input: 'go' }))
      expect(error).toMatchObject({ code: 'capability_failed', cause: { name: 'RangeError' } })
      expect((await typesOf(threads, thread)).slice(-last.length), name).toEqual(last)
      expect(returnsOf((await threads.thread(thread).state()).messageHistory)).toEqual(returns)
      expect(ran).toBe(name === 'afterTool' ? 1 : 0)
      const failed = (await eventsOf(threads, thread)).at(-1)?.event
      const details = { capability: 'acme.hook', hook: name, error_type: 'RangeError' }
      expect(failed?.type === 'run.failed/1' && failed.data.details.value).toEqual(details)
      expect(Buffer.from((await eventsOf(threads, thread)).at(-1)!.bytes).toString()).not.toContain('secret')
      // The thread is not lost: a run without the capability goes on.
      expect((await threads.run(agentWith([says('fine')], []), { thread, input: 'on' })).status).toBe('completed')
    }
  },

  'what comes after may not wait, for nothing that was done waits for it': async (log) => {
    await using threads = await openThreadlog({ log })
    for (const name of ['afterModel', 'afterTool'] as const) {
      const agent = agentWith(once, [hook({ [name]: async () => {} })])
      const error = await caughtBy(threads.run(agent, { thread: `thread_${name.toLowerCase()}`, input: 'go' }))
      expect(error).toMatchObject({ code: 'capability_failed', cause: { name: 'TypeError' } })
    }
  },

  'a call that a policy refuses, or that waits for somebody, comes to no hook': async (log) => {
    await using threads = await openThreadlog({ log })
    const seen: string[] = []
    const agent = agentWith(once, [counter(seen)])
    await threads.run(agent, { thread: 'thread_a', input: 'go', bindings: { policy: () => 'deny' } })
    await threads.run(agentWith(once, [counter(seen)]), {
      thread: 'thread_b',
      input: 'go',
      bindings: { policy: () => 'approval_required' },
    })
    expect(seen.filter((hooked) => hooked.startsWith('beforeTool'))).toEqual([])
    expect(seen.filter((hooked) => hooked.startsWith('afterTool'))).toEqual([expect.stringContaining('afterTool c1 failed')])
  },

  'a hook that hangs is given up with its run': async (log) => {
    await using threads = await openThreadlog({ log })
    for (const name of ['beforeModel', 'beforeTool'] as const) {
      const reached = Promise.withResolvers<void>()
      const hanging = () => {
        reached.resolve()
        return new Promise<undefined>(() => {})
      }
      const running = threads.run(agentWith(once, [hook({ [name]: hanging })]), {
        thread: `thread_${name.toLowerCase()}`,
        input: 'go',
      })
      await reached.promise
      await threads.thread(`thread_${name.toLowerCase()}`).cancel()
      expect((await running).status).toBe('cancelled')
    }
  },
}
