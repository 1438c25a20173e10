import { canonicalJson, isJsonObject, isThreadlogError, type JsonObject, type JsonValue } from '../base/index.ts'
import {
  ANSWER_SCHEMA,
  APPROVAL_SCHEMA,
  continuationSchemaId,
  HUMAN_PROVIDER,
  validateQuestionRequest,
} from '../continuations/index.ts'
import { parseArgs, type ToolCallPart, type ToolRetry } from '../messages/index.ts'
import { type Agent, QUESTION_TOOL } from './agent.ts'
import { errorName } from './error-name.ts'
import type { Tool, ToolIssue, Validated } from './tool.ts'

/** What the current surface says about a call, before anything is run. */
export type Classified =
  | { do: 'dispatch'; tool: Tool; args: JsonValue; approved: boolean; metadata?: JsonObject }
  | ({ do: 'defer'; tool: Tool; args: JsonObject; metadata?: JsonObject } & Waiting)
  | { do: 'retry'; cause: ToolRetry['cause']; content: string }
  | { do: 'fail'; content: string }

interface Waiting {
  kind: 'external' | 'approval' | 'question'
  provider: string
  schemaId: string
}
/** How an approval is waited for. */
export const APPROVAL_WAIT = { kind: 'approval', provider: HUMAN_PROVIDER, schemaId: APPROVAL_SCHEMA } as const

/** A granted approval: the overrides, if any, replace the arguments and are validated like them. */
export interface Approval {
  overrideArgs: JsonObject | undefined
  /** What came with it. */
  metadata?: JsonObject
  /** What was approved, where that is known. */
  proposal?: { readonly digest: string; readonly args: JsonObject }
}

/** Decides what to do with a call of the model. Pure, given the agent. */
export function classify(agent: Agent, call: ToolCallPart, approval?: Approval): Classified {
  const tool = agent.tools.get(call.tool_name)
  if (!tool) return { do: 'retry', cause: 'unknown_tool', content: unknownTool(call.tool_name, [...agent.tools.keys()]) }
  const parsed = approval?.overrideArgs ? { ok: true as const, value: approval.overrideArgs } : parseArgs(call)
  if (!parsed.ok) return { do: 'retry', cause: 'validation_error', content: 'The arguments are not a JSON object.' }
  if (tool.kind === 'external' && !tool.submit) return external(tool, parsed.value)
  const checked = check(tool, parsed.value, approval !== undefined)
  if ('failure' in checked) return { do: 'fail', content: checked.failure }
  const { validated, asks } = checked
  if (!validated.ok) return { do: 'retry', cause: 'validation_error', content: invalidArguments(validated.issues) }
  const permission = agent.permissions.get(tool.name)
  if (permission === 'deny') return { do: 'fail', content: PERMISSION_DENIED }
  if (permission === 'ask' && approval === undefined)
    return { do: 'defer', tool, args: parsed.value, metadata: PERMISSION_METADATA, ...APPROVAL_WAIT }
  if (asks && permission !== 'allow') return { do: 'defer', tool, args: parsed.value, ...APPROVAL_WAIT }
  const metadata = approval?.metadata
  return { do: 'dispatch', tool, args: validated.value, approved: approval !== undefined, ...(metadata && { metadata }) }
}

/** What the model reads of a call that a permission refuses. */
export const PERMISSION_DENIED = 'The call is not permitted. It was not run.'
/** What a person is told of a call that a permission makes them decide. */
export const PERMISSION_REASON = 'Calls of this tool need a permission.'
const PERMISSION_METADATA: JsonObject = { reason: PERMISSION_REASON }

/** The tool's own code about its arguments. What it throws is its fault, not the model's and not the run's: the call fails. */
function check(tool: Tool, args: JsonObject, approved: boolean): { validated: Validated; asks: boolean } | { failure: string } {
  try {
    const validated = tool.validate(args)
    return { validated, asks: !approved && validated.ok && isYes(tool.needsApproval(validated.value)) }
  } catch (error) {
    return { failure: `The tool could not check its arguments (${errorName(error)}).` }
  }
}

/** A decision cannot wait: an answer that is to come later counts as yes, and nobody misses its rejection. */
function isYes(answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null || !('then' in answer)) return answer === true
  void Promise.resolve(answer).catch(() => undefined)
  return true
}

/** External calls are not validated against their schema (settled list §3); questions must be well-formed to be shown. */
function external(tool: Tool, args: JsonObject): Classified {
  if (tool.name !== QUESTION_TOOL)
    return { do: 'defer', tool, args, kind: 'external', provider: tool.provider ?? 'client', schemaId: resultSchemaId(tool) }
  try {
    validateQuestionRequest(args)
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    return {
      do: 'fail',
      content: `The question cannot be shown: ${error.path ?? '$'} should be ${error.expected ?? 'as described'}.`,
    }
  }
  return { do: 'defer', tool, args, kind: 'question', provider: HUMAN_PROVIDER, schemaId: ANSWER_SCHEMA }
}

const schemaIds = new WeakMap<Tool, string>()

/** Schema id of a tool's results: `continuationSchemaId` of their JSON Schema (design §6). */
export function resultSchemaId(tool: Tool): string {
  let id = schemaIds.get(tool)
  if (id === undefined) {
    id = continuationSchemaId(tool.resultSchema ?? {})
    schemaIds.set(tool, id)
  }
  return id
}

const unknownTool = (name: string, known: string[]): string =>
  `There is no tool called ${canonicalJson(name.slice(0, 128))}. Available: ${known.length > 0 ? known.join(', ') : 'none'}.`

const invalidArguments = (issues: ToolIssue[]): string =>
  `The arguments are not valid:\n${issues.map((issue) => `- ${issue.path}: ${issue.message}`).join('\n')}`

/** The approval in an accepted value of `threadlog.approval/1`; undefined for a denial. */
export function approvalIn(value: JsonValue): Approval | undefined {
  if (!isJsonObject(value) || value['approved'] !== true) return undefined
  return { overrideArgs: isJsonObject(value['override_args']) ? value['override_args'] : undefined }
}
