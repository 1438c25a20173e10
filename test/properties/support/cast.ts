import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { z } from 'zod'
import { type Agent, defineAgent, defineTool, externalTool, QUESTION_TOOL, type ToolContext } from '../../../src/harness/index.ts'

/** Who is told that a tool body began, and says how it ends. Bound to each run as its `deps`. */
export interface Stage {
  perform(tool: string, context: ToolContext): Promise<unknown>
  ask(options: LanguageModelV4CallOptions): Promise<ModelAnswer>
}

const input = z.object({ n: z.int() })
const local = (name: string, more: { needsApproval?: boolean; sequential?: boolean; recovery?: 'retryable' } = {}) =>
  defineTool({ name, description: name, input, ...more, execute: (_, context) => (context.deps as Stage).perform(name, context) })
const far = externalTool({
  name: 'far',
  description: 'far',
  input,
  provider: 'outside',
  result: z.object({ ok: z.boolean() }),
  deadlineMs: 5_000,
})

const everything = [
  local('plain'),
  local('safe', { recovery: 'retryable' }),
  local('alone', { sequential: true }),
  local('guarded', { needsApproval: true }),
  local('guarded_safe', { needsApproval: true, recovery: 'retryable' }),
  far,
]

const silent: LanguageModelV4 = {
  specificationVersion: 'v4',
  provider: 'simulated',
  modelId: 'simulated',
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error('only streams')),
  doStream: () => Promise.reject(new Error('no stage')),
}

const revision = (name: string, tools: Parameters<typeof defineAgent>[0]['tools'], system?: string, questions = true): Agent =>
  defineAgent({ name: 'agent', revision: name, model: silent, tools, system, questions, deadlines: { human: 9_000 } })

/** The agent as it changes over time: all tools, some gone, another identity of the same name, others guarded, none. */
export const REVISIONS: readonly Agent[] = [
  revision('full', everything, 'You test.'),
  revision(
    'fewer',
    everything.filter((tool) => !['far', 'guarded', 'plain'].includes(tool.name)),
  ),
  revision('moved', [...everything.filter((tool) => tool !== far), local('far')], 'You test twice.'),
  revision(
    'strict',
    [local('plain', { needsApproval: true }), local('safe'), local('guarded'), local('alone'), far],
    'You test.',
  ),
  revision('bare', [], undefined, false),
]

/** The agent with a model whose answers the stage gives. */
export const played = (agent: Agent, stage: Stage): Agent => ({
  ...agent,
  model: { ...silent, doStream: async (options) => ({ stream: streamOf(await stage.ask(options)) }) },
})

/** What a model says: parts in order, then how the stream ends. */
export interface ModelAnswer {
  readonly what: string
  readonly text?: string
  readonly calls?: readonly Call[]
  readonly end: 'stop' | 'pause' | 'disconnect' | 'refused' | 'busy'
}

interface Call {
  readonly id: string
  readonly name: string
  readonly args: string
}

class Disconnected extends Error {
  readonly code = 'ECONNRESET'
}

/** Pulled part by part: what was queued would be lost when the stream breaks. */
function streamOf(answer: ModelAnswer): ReadableStream<LanguageModelV4StreamPart> {
  if (answer.end === 'refused') throw new Error('refused')
  if (answer.end === 'busy') throw new Disconnected()
  const parts = partsOf(answer)
  let at = 0
  const pull = (controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>) => {
    const part = parts[at++]
    if (part) controller.enqueue(part)
    else if (answer.end === 'disconnect') controller.error(new Disconnected())
    else controller.close()
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

function partsOf({ text, calls = [], end }: ModelAnswer): LanguageModelV4StreamPart[] {
  const parts: LanguageModelV4StreamPart[] = [{ type: 'stream-start', warnings: [] }]
  if (text !== undefined)
    parts.push({ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: text }, { type: 'text-end', id: 't' })
  for (const { id, name, args } of calls) parts.push({ type: 'tool-call', toolCallId: id, toolName: name, input: args })
  if (end === 'disconnect') return parts
  const usage = {
    inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: undefined, reasoning: undefined },
  }
  const unified = calls.length > 0 ? 'tool-calls' : 'stop'
  return [...parts, { type: 'finish', usage, finishReason: { unified, raw: end === 'pause' ? 'pause_turn' : undefined } }]
}

const QUESTION = {
  questions: [
    {
      question: 'Sure?',
      header: 'Sure',
      options: [
        { label: 'Yes', description: 'y' },
        { label: 'No', description: 'n' },
      ],
    },
  ],
}

const TOOLS = ['plain', 'safe', 'far', 'guarded', 'alone', 'guarded_safe', QUESTION_TOOL, 'plain', 'safe', 'nowhere']

/** A number below `below`; each call uses up a part of the detail. */
export type Pick = (below: number) => number

/** One of the things a model may say. Call ids repeat over a thread's life, as models' do. */
export function modelAnswer(pick: Pick): ModelAnswer {
  const kind = pick(16)
  if (kind < 9) return calling(pick, 'stop')
  if (kind < 12) return { what: 'says a text', text: 'done', end: 'stop' }
  if (kind === 12) return { what: 'says nothing', end: 'stop' }
  if (kind === 13) return pick(2) === 0 ? { what: 'is busy', end: 'busy' } : { what: 'refuses', end: 'refused' }
  if (kind === 14) return pick(2) === 0 ? { what: 'pauses', text: 'well', end: 'pause' } : calling(pick, 'pause')
  return pick(2) === 0 ? { what: 'breaks off', text: 'we', end: 'disconnect' } : calling(pick, 'disconnect')
}

function calling(pick: Pick, end: ModelAnswer['end']): ModelAnswer {
  const repeated = pick(24) === 0
  const calls = Array.from({ length: 1 + pick(4) }, (_, i): Call => {
    const name = TOOLS[pick(TOOLS.length)] as string
    const args = JSON.stringify(name === QUESTION_TOOL ? QUESTION : { n: i })
    const wrong = pick(20)
    return { id: repeated ? 'c1' : `c${i + 1}`, name, args: wrong === 0 ? '{"n":"x"}' : wrong === 1 ? '{"n":' : args }
  })
  const made = calls.map(({ id, name, args }) => `${id} ${name}${args.includes('x') || args.endsWith(':') ? ' (invalid)' : ''}`)
  const after = { stop: '', pause: ', then pauses', disconnect: ', then breaks off', refused: '', busy: '' }[end]
  return { what: `calls ${made.join(', ')}${after}`, calls, end }
}
