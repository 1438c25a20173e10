import type { LanguageModelV4 } from '@ai-sdk/provider'
import { type JsonObject, jsonDigest, reject } from '../base/index.ts'
import { ANSWER_SCHEMA, HUMAN_PROVIDER, questionRequestSchema } from '../continuations/index.ts'
import { jsonSchema, type Tool } from './tool.ts'

/** An agent: trusted code, rebuilt by every process that runs it. Only its name and revision enter the log. */
export interface Agent {
  readonly name: string
  /** Raised with every change a suspended thread should notice. */
  readonly revision: string
  readonly model: LanguageModelV4
  /** System prompt blocks, in order. */
  readonly system: readonly string[]
  readonly tools: ReadonlyMap<string, Tool>
}

/** The built-in tool with which an agent asks its user (state spec §3.7). */
export const QUESTION_TOOL = 'ask_user_question'

/**
 * Declares an agent.
 * @param o.model any AI SDK `LanguageModelV4` (`provider('model-id')`)
 * @param o.questions adds `ask_user_question`
 * @throws ThreadlogError `agent_invalid`, `tool_duplicate`
 */
export function defineAgent(o: {
  name: string
  revision: string
  model: LanguageModelV4
  system?: string | readonly string[]
  tools?: readonly Tool[]
  questions?: boolean
}): Agent {
  for (const field of ['name', 'revision'] as const)
    if (typeof o[field] !== 'string' || o[field].trim() === '')
      throw reject('agent_invalid', `The agent has no ${field}.`, { path: field, expected: 'a non-blank string' })
  if (o.model?.specificationVersion !== 'v4')
    throw reject('agent_invalid', 'The model is not an AI SDK LanguageModelV4.', {
      path: 'model',
      expected: 'what a provider of AI SDK 7 returns, such as `openai("…")`',
    })
  const tools = new Map<string, Tool>()
  for (const tool of [...(o.tools ?? []), ...(o.questions ? [questionTool] : [])]) {
    if (tools.has(tool.name)) throw reject('tool_duplicate', `Two tools are called ${tool.name}.`, { path: 'tools' })
    tools.set(tool.name, tool)
  }
  checkSystem(o.system)
  const system = o.system === undefined ? [] : typeof o.system === 'string' ? [o.system] : [...o.system]
  return { name: o.name, revision: o.revision, model: o.model, system, tools }
}

const MAX_SYSTEM_BYTES = 65_536 - 8_192

function checkSystem(system: string | readonly string[] | undefined): void {
  const blocks = system === undefined ? [] : [system].flat()
  const usable = blocks.every((block) => typeof block === 'string' && block.isWellFormed())
  if (usable && Buffer.byteLength(blocks.join('')) <= MAX_SYSTEM_BYTES) return
  throw reject('agent_invalid', 'The system prompt is not usable.', {
    path: 'system',
    expected: `well-formed text, or a list of it, of at most ${MAX_SYSTEM_BYTES} bytes in all`,
  })
}

/** Stable identity of a tool: what a deferred request is compared by (settled list A5). */
export const toolIdentity = (tool: Tool): string => `tool/${tool.kind === 'external' ? 'client' : 'local'}/${tool.name}`

/** Digest of what an approver is shown: the tool, its arguments and its definition. */
export const proposalDigest = (tool: Tool, args: JsonObject): string =>
  jsonDigest({
    tool: toolIdentity(tool),
    arguments: args,
    definition: { name: tool.name, description: tool.description, input: tool.inputSchema },
  })

const questionTool: Tool = {
  kind: 'external',
  name: QUESTION_TOOL,
  description: 'Ask the user one to four questions, each with two to four options. Free text is always a possible answer.',
  inputSchema: jsonSchema(questionRequestSchema, 'input'),
  validate: (args) => ({ ok: true, value: args }),
  needsApproval: () => false,
  sequential: false,
  retryable: false,
  timeoutMs: undefined,
  provider: HUMAN_PROVIDER,
  resultSchema: { $id: ANSWER_SCHEMA },
}
