import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { z } from 'zod'
import { checkOptions, type JsonObject, type JsonValue, jsonDigest, reject } from '../base/index.ts'
import { ANSWER_SCHEMA, HUMAN_PROVIDER, questionRequestSchema } from '../continuations/index.ts'
import { type Capability, checkDistinct } from './capabilities/index.ts'
import { COLD_START_IDLE_SECONDS } from './history/index.ts'
import type { OutputType } from './output.ts'
import { deadlineOf, jsonSchema, type Tool, validator } from './tool.ts'

/** An agent: trusted code, rebuilt by every process that runs it. Only its name and revision enter the log. */
export interface Agent {
  readonly name: string
  /** Raised with every change a suspended thread should notice. */
  readonly revision: string
  readonly model: LanguageModelV4
  /** System prompt blocks, in order; those of capabilities last. */
  readonly system: readonly string[]
  /** Those of capabilities included. */
  readonly tools: ReadonlyMap<string, Tool>
  readonly capabilities: readonly Capability[]
  /** What calls of a tool need, by its name: as the tool says, nothing, a person's yes, a reviewer's, or they are refused. */
  readonly permissions: ReadonlyMap<string, Permission>
  readonly reviewer?: Reviewer
  /** Milliseconds that waits of a provider last whose tool says nothing, by provider. */
  readonly deadlines: ReadonlyMap<string, number>
  /** What input does that comes while the thread is suspended. */
  readonly onNewInput: 'supersede' | 'require-abandon'
  /** What becomes of an approval whose tool was defined anew since. */
  readonly onChangedProposal: 'refuse' | 'report'
  /** What its answer must be; undefined: any text. */
  readonly output?: OutputType
  readonly modelRetries: number
  readonly modelRecovery?: ModelRecovery
  /** Seconds since the latest response after which consumed results are shortened; undefined: never. */
  readonly coldStartSeconds: number | undefined
}

export type Permission = 'allow' | 'ask' | 'review' | 'deny'

/** A call about to run, as policies and reviewers see it. `approved`: a person has approved this very call. */
export interface PolicyCall {
  readonly tool: string
  readonly identity: string
  readonly args: JsonValue
  readonly callId: string
  readonly approved: boolean
  readonly principal: unknown
}
export type PolicyDecision =
  | 'allow'
  | 'deny'
  | 'approval_required'
  | { readonly decision: 'allow' | 'deny' | 'approval_required'; readonly metadata?: JsonObject }
/** Asked at each dispatch, never twice for one. Undefined: no opinion. An approval satisfies `approval_required`, never `deny`. */
export type Policy = (call: PolicyCall) => PolicyDecision | undefined | Promise<PolicyDecision | undefined>
export type Reviewer = Policy

/** Goes on after a failed model request with what was received (state spec §5.3). */
export interface ModelRecovery {
  /** Failures in a row before the run fails. */
  readonly maxAttempts: number
  /** Milliseconds before the n-th further attempt, from 1. Default 1 to 30 s, doubling. */
  readonly delayMs?: (attempt: number) => number
}

/** The built-in tool with which an agent asks its user (state spec §3.7). */
export const QUESTION_TOOL = 'ask_user_question'
const QUESTION_IDENTITY = `tool/a13n-user-interaction-tools/${QUESTION_TOOL}`

/**
 * Declares an agent.
 * @param o.model any AI SDK `LanguageModelV4` (`provider('model-id')`)
 * @param o.questions adds `ask_user_question`
 * @param o.capabilities what they bring stands behind what the agent has of its own; their hooks run in this order
 * @param o.permissions by tool name: `allow` runs it without asking, `ask` needs a person, `review` asks the reviewer, `deny` refuses
 * @param o.onNewInput input for a suspended thread takes the place of what it waits for (`supersede`, the default), or is refused unless the run says
 *   `abandon: true` (`require-abandon`)
 * @param o.onChangedProposal an approval is of a tool, its arguments and its definition: of another definition it resumes nothing (`refuse`, the
 *   default), or runs and is reported in `tool.dispatched` (`report`, as the original does)
 * @param o.output zod type of the answer, synchronous checks only: the model is asked for JSON, and told of what does not fit, 3 times at most;
 *   default: the text
 * @param o.modelRetries how often a request is sent again that failed before anything came of it, and may succeed later; default 2
 * @param o.modelRecovery off by default
 * @param o.deadlines by provider, how many milliseconds a wait lasts whose tool gives no `deadlineMs`; `human`: approvals and questions; default:
 *   for ever
 * @param o.coldStart long results are shortened once a thread has been idle for `idleSeconds` (default 3,600); `false`: never
 * @throws ThreadlogError `agent_invalid`, `capability_duplicate`, `deadline_invalid`, `tool_duplicate`
 */
export function defineAgent(o: {
  name: string
  revision: string
  model: LanguageModelV4
  system?: string | readonly string[]
  tools?: readonly Tool[]
  capabilities?: readonly Capability[]
  questions?: boolean
  permissions?: Readonly<Record<string, Permission>>
  reviewer?: Reviewer
  deadlines?: Readonly<Record<string, number>>
  onNewInput?: Agent['onNewInput']
  onChangedProposal?: Agent['onChangedProposal']
  output?: z.ZodType
  modelRetries?: number
  modelRecovery?: ModelRecovery
  coldStart?: false | { idleSeconds: number }
}): Agent {
  checkOptions(o)
  for (const field of ['name', 'revision'] as const)
    if (typeof o[field] !== 'string' || o[field].trim() === '')
      throw reject('agent_invalid', `The agent has no ${field}.`, { path: field, expected: 'a non-blank string' })
  if (o.model?.specificationVersion !== 'v4')
    throw reject('agent_invalid', 'The model is not an AI SDK LanguageModelV4.', {
      path: 'model',
      expected: 'what a provider of AI SDK 7 returns, such as `openai("…")`',
    })
  const capabilities = [...(o.capabilities ?? [])]
  checkDistinct(capabilities)
  const tools = new Map<string, Tool>()
  const brought = capabilities.flatMap((capability) => capability.tools)
  for (const tool of [...(o.tools ?? []), ...brought, ...(o.questions ? [questionTool] : [])]) {
    if (tools.has(tool.name)) throw reject('tool_duplicate', `Two tools are called ${tool.name}.`, { path: 'tools' })
    tools.set(tool.name, tool)
  }
  const own = o.system === undefined ? [] : [o.system].flat()
  const system = [...own, ...capabilities.flatMap(({ instructions }) => instructions)]
  checkSystem(system)
  const coldStartSeconds = o.coldStart === false ? undefined : (o.coldStart?.idleSeconds ?? COLD_START_IDLE_SECONDS)
  return {
    ...{ name: o.name, revision: o.revision, model: o.model, system, tools, capabilities, coldStartSeconds },
    onNewInput: oneOf('onNewInput', o.onNewInput, ['supersede', 'require-abandon']),
    onChangedProposal: oneOf('onChangedProposal', o.onChangedProposal, ['refuse', 'report']),
    permissions: permissionsOf(o.permissions ?? {}),
    deadlines: new Map(
      Object.entries(o.deadlines ?? {}).map(([provider, ms]) => [provider, deadlineOf(ms, `deadlines.${provider}`)]),
    ),
    ...(o.reviewer === undefined ? {} : { reviewer: o.reviewer }),
    modelRetries: checkedRetries(o.modelRetries),
    ...(o.output === undefined ? {} : { output: { schema: jsonSchema(o.output, 'output'), validate: validator(o.output) } }),
    ...(o.modelRecovery === undefined ? {} : { modelRecovery: checkedRecovery(o.modelRecovery) }),
  }
}

/** The first is the default. */
function oneOf<T extends string>(path: string, given: T | undefined, known: readonly [T, T]): T {
  if (given === undefined) return known[0]
  if (known.includes(given)) return given
  throw reject('agent_invalid', 'There is no such choice.', { path, expected: known.join(' or ') })
}

const PERMISSIONS: readonly Permission[] = ['allow', 'ask', 'review', 'deny']

function permissionsOf(given: Readonly<Record<string, Permission>>): ReadonlyMap<string, Permission> {
  for (const [tool, permission] of Object.entries(given))
    if (!PERMISSIONS.includes(permission))
      throw reject('agent_invalid', 'There is no such permission.', {
        path: `permissions.${tool}`,
        expected: PERMISSIONS.join(', '),
      })
  return new Map(Object.entries(given))
}

const MODEL_RETRIES = 2

function checkedRetries(retries = MODEL_RETRIES): number {
  if (Number.isSafeInteger(retries) && retries >= 0) return retries
  throw reject('agent_invalid', 'The number of retries is not usable.', {
    path: 'modelRetries',
    expected: 'a whole number from 0',
  })
}

function checkedRecovery(recovery: ModelRecovery): ModelRecovery {
  if (Number.isSafeInteger(recovery.maxAttempts) && recovery.maxAttempts > 0) return recovery
  throw reject('agent_invalid', 'The model recovery is not usable.', {
    path: 'modelRecovery.maxAttempts',
    expected: 'a whole number above 0',
  })
}

const MAX_SYSTEM_BYTES = 65_536 - 8_192

function checkSystem(blocks: readonly string[]): void {
  const usable = blocks.every((block) => typeof block === 'string' && block.isWellFormed())
  if (usable && Buffer.byteLength(blocks.join('')) <= MAX_SYSTEM_BYTES) return
  throw reject('agent_invalid', 'The system prompt is not usable.', {
    path: 'system',
    expected: `well-formed text, or a list of it, of at most ${MAX_SYSTEM_BYTES} bytes in all`,
  })
}

/** Stable identity of a tool: what a deferred request is compared by (settled list A5). */
export const toolIdentity = (tool: Tool): string =>
  tool.identity ?? `tool/${tool.kind === 'external' ? 'client' : 'local'}/${tool.name}`

/** The agent as a run with these bindings sees it: one that cannot wait for anybody lacks the tools that always do (state spec §3.1). */
export function seenBy(bindings: { deferredToolsSupported?: boolean } | undefined, agent: Agent): Agent {
  if (bindings?.deferredToolsSupported !== false) return agent
  const offered = ([name, tool]: [string, Tool]) =>
    tool.kind === 'local' && !(tool.asksAlways && agent.permissions.get(name) !== 'allow')
  return { ...agent, tools: new Map([...agent.tools].filter(offered)) }
}

/** Digest of what an approver is shown: the tool, its arguments and its definition. */
export const proposalDigest = (tool: Tool, args: JsonObject): string =>
  jsonDigest({
    tool: toolIdentity(tool),
    arguments: args,
    definition: { name: tool.name, description: tool.description, input: tool.inputSchema },
  })

const questionTool: Tool = {
  kind: 'external',
  identity: QUESTION_IDENTITY,
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
