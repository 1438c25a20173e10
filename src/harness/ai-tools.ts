import type { z } from 'zod'
import { isJsonObject, type JsonObject, type JsonValue, reject } from '../base/index.ts'
import { checkToolName, jsonSchema, type Tool, type ToolContext, type Validated, validator } from './tool.ts'

/** What is read of an AI SDK tool (`tool()` of `ai` 7), named here so that the package is no dependency. */
export interface AiTool {
  type?: string | undefined
  description?: string | ((options: never) => string) | undefined
  inputSchema?: unknown
  execute?: ((input: never, options: never) => unknown) | undefined
  needsApproval?: boolean | ((input: never, options: never) => unknown) | undefined
}

/**
 * AI SDK tools as they are: with `execute` they run here, without it they are external calls of provider `client`;
 * `needsApproval` makes a person decide. Their schemas must be synchronous (zod, or `jsonSchema(…)` with a plain object).
 *
 * Read: `description`, `inputSchema`, `execute`, `needsApproval`. A `description` that is a function is asked once, without a context. A
 * `needsApproval` function is asked before the call has a place in the log: it gets the arguments, no call id, no messages and no context,
 * and an answer that comes later counts as yes. `execute` gets the call id, the abort signal, the bound `deps` as `context`, and no messages.
 * Not carried over: `outputSchema`, `toModelOutput`, `onInput…`, `contextSchema`, `strict`, `inputExamples`, `title`, `metadata`,
 * `providerOptions`, `deferLoading`.
 * @param tools a tool set, by tool name
 * @throws ThreadlogError `tool_schema_unsupported`, `tool_name_invalid`, `tool_unsupported` (a tool of the model's provider; an approval
 *   without `execute`)
 */
export function aiTools(tools: Readonly<Record<string, AiTool>>): Tool[] {
  return Object.entries(tools).map(([name, tool]) => fromAiTool(name, tool))
}

function fromAiTool(name: string, tool: AiTool): Tool {
  checkToolName(name)
  if (tool.type === 'provider')
    throw reject('tool_unsupported', `Tool ${name} belongs to the model's provider.`, {
      path: name,
      expected: 'a tool made by `tool()` or `dynamicTool()`',
      hint: 'Write a tool of your own that does the same.',
    })
  const schema = schemaOf(name, tool.inputSchema)
  const common = {
    name,
    description: descriptionOf(tool.description),
    inputSchema: schema.json,
    validate: schema.validate,
    sequential: false,
    retryable: false,
    timeoutMs: undefined,
  }
  const execute = tool.execute as ((input: unknown, options: unknown) => unknown) | undefined
  const needsApproval = tool.needsApproval as boolean | Ask | undefined
  if (execute)
    return {
      ...common,
      kind: 'local',
      needsApproval: (args) => (typeof needsApproval === 'function' ? asks(needsApproval, args) : needsApproval === true),
      execute: (args, { callId, signal, deps }: ToolContext) =>
        collect(execute(args, { toolCallId: callId, messages: [], abortSignal: signal, context: deps })),
    }
  if (needsApproval)
    throw reject('tool_unsupported', `Tool ${name} asks for an approval and has nothing to run.`, {
      path: `${name}.needsApproval`,
      expected: '`execute` beside `needsApproval`, or neither',
      hint: 'Leave out `needsApproval`: whoever answers the external call decides. Or give the tool an `execute`.',
    })
  return { ...common, kind: 'external', provider: 'client', resultSchema: {}, needsApproval: () => false }
}

type Ask = (input: unknown, options: unknown) => unknown

/** A decision cannot wait for an answer that comes later, so a promise counts as yes; that it may reject concerns nobody. */
function asks(needsApproval: Ask, args: JsonValue): boolean {
  const answer = needsApproval(args, { toolCallId: '', messages: [], context: undefined })
  quiet(answer)
  return answer !== false
}

function descriptionOf(given: unknown): string {
  if (typeof given !== 'function') return typeof given === 'string' ? given : ''
  try {
    const told: unknown = given({})
    quiet(told)
    return typeof told === 'string' ? told : ''
  } catch {
    // It wanted the context, which there is only while a run is going on.
    return ''
  }
}

/** Takes the rejection of a promise nobody waits for. */
function quiet(value: unknown): void {
  if (typeof value === 'object' && value !== null) void Promise.resolve(value).catch(() => undefined)
}

/** A body may stream preliminary results: the last one counts. */
async function collect(result: unknown): Promise<unknown> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result
  let last: unknown
  for await (const item of result as AsyncIterable<unknown>) last = item
  return last
}

interface SyncSchema {
  json: JsonObject
  validate(args: JsonObject): Validated
}

function schemaOf(name: string, given: unknown): SyncSchema {
  const schema = typeof given === 'function' ? (given as () => unknown)() : given
  if (isZod(schema)) return { json: jsonSchema(schema as z.ZodType, 'input'), validate: validator(schema as z.ZodType) }
  const foreign = schema as { jsonSchema?: unknown; validate?: (value: unknown) => unknown } | undefined
  if (isJsonObject(foreign?.jsonSchema) && !(foreign.jsonSchema instanceof Promise))
    return { json: foreign.jsonSchema, validate: (args) => foreignResult(foreign.validate?.(args), args) }
  throw reject('tool_schema_unsupported', `The input schema of tool ${name} cannot be read synchronously.`, {
    path: `${name}.inputSchema`,
    expected: 'a zod 4 schema, or `jsonSchema(…)` with a plain object',
  })
}

const isZod = (schema: unknown): boolean => typeof schema === 'object' && schema !== null && '_zod' in schema

function foreignResult(result: unknown, args: JsonObject): Validated {
  if (result === undefined) return { ok: true, value: args }
  quiet(result)
  if (result instanceof Promise)
    return {
      ok: false,
      issues: [{ path: '(arguments)', message: 'the schema checks asynchronously, which a decision cannot wait for' }],
    }
  const { success, value } = result as { success?: boolean; value?: JsonValue }
  if (success === true) return { ok: true, value: value ?? null }
  return { ok: false, issues: [{ path: '(arguments)', message: 'not what the schema asks for' }] }
}
