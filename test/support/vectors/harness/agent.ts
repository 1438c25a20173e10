import { z } from 'zod'
import {
  type Agent,
  approvalRequired,
  callDeferred,
  defineAgent,
  defineTool,
  externalTool,
  modelRetry,
  type Policy,
  type Tool,
  type ToolContext,
  toolFailed,
  toolReturn,
} from '../../../../src/harness/index.ts'
import { RECORDED_MODEL, type ScriptedModel, scriptedModel } from '../../../../src/models/index.ts'
import type { Any } from './values.ts'

/** What a vector describes, built: its agent, and what can be seen of it. */
export interface Cast {
  agent: Agent
  model: ScriptedModel
  policy: Policy | undefined
  executed: Any[]
  policyEvaluated: string[]
  /** Resolves when a `hang` tool, or a hanging model stream, has begun. */
  hanging: Promise<void>
}

/** The exception of the `throw` body. */
export class BodyError extends Error {}

/** How long a hanging stream is given to tell what it has, in milliseconds. */
const STREAM_MS = 40

export function castOf(v: Any): Cast {
  const executed: Any[] = []
  const policyEvaluated: string[] = []
  let begun: () => void = () => {}
  const hanging = new Promise<void>((resolve) => (begun = resolve))
  const script = v.model_script ?? []
  const model = scriptedModel((_prompt, i) => {
    const entry = script[i]
    if (entry?.then === 'hang') setTimeout(begun, STREAM_MS)
    return entry && { ...entry, parts: entry.parts.map(partOf) }
  }, RECORDED_MODEL)
  const tools: Tool[] = (v.tools ?? []).map((tool: Any) => toolOf(tool, executed, begun))
  const a = v.agent ?? {}
  const agent = defineAgent({
    ...{ name: 'recorded', revision: '1', model, tools, modelRetries: 0 },
    ...(a.system_prompt === undefined ? {} : { system: a.system_prompt }),
    ...(a.permissions === undefined ? {} : { permissions: a.permissions }),
    ...(a.model_recovery === undefined
      ? {}
      : { modelRecovery: { maxAttempts: a.model_recovery.max_attempts, delayMs: () => 0 } }),
    ...(a.questions ? { questions: true } : {}),
    ...(a.cold_start === false ? { coldStart: false } : {}),
  })
  const policies = new Map<string, Any>((v.tools ?? []).filter((t: Any) => t.policy).map((t: Any) => [t.name, t.policy]))
  const policy: Policy = ({ tool }) => {
    if (!policies.has(tool)) return undefined
    policyEvaluated.push(tool)
    return policies.get(tool)
  }
  return { agent, model, policy: policies.size > 0 ? policy : undefined, executed, policyEvaluated, hanging }
}

/** Arguments in the text form of the recording. */
function partOf(part: Any): Any {
  if (!part.tool_call || part.tool_call.args_text !== undefined) return part
  const { args, ...call } = part.tool_call
  return { tool_call: { ...call, args_text: pythonJson(args) } }
}

function pythonJson(value: Any): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .map(([key, item]) => `${JSON.stringify(key)}: ${pythonJson(item)}`)
      .join(', ')}}`
  return JSON.stringify(value)
}

const WHOLE = /^-?\d+$/
const integer = z.preprocess((value) => (typeof value === 'string' && WHOLE.test(value) ? Number(value) : value), z.int())

function inputOf(parameters: Any): z.ZodType {
  const shape = Object.fromEntries(
    Object.entries<Any>(parameters?.properties ?? {}).map(([name, { type }]) => {
      const field = type === 'integer' ? integer : z.string()
      return [name, parameters.required?.includes(name) ? field : field.optional()]
    }),
  )
  return z.strictObject(shape)
}

function toolOf(t: Any, executed: Any[], begun: () => void): Tool {
  const recovery = t.recovery_retryable === true ? ({ recovery: 'retryable' } as const) : {}
  const common = { name: t.name, description: t.name, input: inputOf(t.parameters), ...recovery }
  if (t.kind === 'external') return externalTool({ ...common, provider: 'client' })
  return defineTool({
    ...common,
    ...(t.requires_approval ? { needsApproval: true } : {}),
    ...(t.sequential ? { sequential: true } : {}),
    ...(t.policy ? { identity: `managed.${t.name}` } : {}),
    execute: (args: Any, context) => {
      const flagged = t.behaviour === 'ask' || t.behaviour === 'report'
      executed.push({ tool: t.name, args, ...(flagged ? { approved: context.approved } : {}) })
      return behave(t, args, context, begun)
    },
  })
}

function behave(t: Any, args: Any, { approved, metadata, signal }: ToolContext, begun: () => void): unknown {
  switch (t.behaviour) {
    case 'add':
      return args.a + args.b
    case 'set_value':
      return { value: args.value }
    case 'throw':
      throw new BodyError(args.text)
    case 'fail':
      throw toolFailed(args.text)
    case 'retry':
      throw modelRetry(args.text)
    case 'defer':
      throw callDeferred(t.defer_metadata ?? {})
    case 'ask':
      return approved ? args.text : approvalRequired(t.defer_metadata ?? {})
    case 'report':
      return { approved, metadata: Object.keys(metadata).length > 0 ? metadata : null }
    case 'wrapped':
      return toolReturn({ returnValue: { said: args.text }, content: `extra ${args.text}`, metadata: { trace: args.text } })
    case 'hang':
      begun()
      return new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason), { once: true }))
    default:
      return args.text
  }
}
