import type { z } from 'zod'
import { isJsonObject, type JsonObject, type JsonValue, reject } from '../base/index.ts'
import { checkToolName, jsonSchema, type Tool, type ToolContext, type Validated, validator } from './tool.ts'

/** What is read of an AI SDK tool (`tool()` of `ai` 7), named here so that the package is no dependency. */
export interface AiTool {
  description?: string | undefined
  inputSchema?: unknown
  execute?: ((input: never, options: never) => unknown) | undefined
  needsApproval?: unknown
}

/**
 * AI SDK tools as they are: with `execute` they run here, without it they are external calls of provider `client`;
 * `needsApproval` makes a person decide. Their schemas must be synchronous (zod, or `jsonSchema(…)` with a plain object).
 * @param tools a tool set, by tool name
 * @throws ThreadlogError `tool_schema_unsupported`, `tool_name_invalid`
 */
export function aiTools(tools: Readonly<Record<string, AiTool>>): Tool[] {
  return Object.entries(tools).map(([name, tool]) => fromAiTool(name, tool))
}

function fromAiTool(name: string, tool: AiTool): Tool {
  checkToolName(name)
  const schema = schemaOf(name, tool.inputSchema)
  const { needsApproval } = tool
  const common = {
    name,
    description: tool.description ?? '',
    inputSchema: schema.json,
    validate: schema.validate,
    sequential: false,
    retryable: false,
    timeoutMs: undefined,
  }
  const execute = tool.execute as ((input: unknown, options: unknown) => unknown) | undefined
  if (!execute) return { ...common, kind: 'external', provider: 'client', resultSchema: {}, needsApproval: () => false }
  return {
    ...common,
    kind: 'local',
    // A function may answer later; a decision cannot wait for it, so it counts as yes.
    needsApproval: (args) => (typeof needsApproval === 'function' ? needsApproval(args, {}) !== false : needsApproval === true),
    execute: (args, { callId, signal, deps }: ToolContext) =>
      collect(execute(args, { toolCallId: callId, messages: [], abortSignal: signal, context: deps })),
  }
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
  const { success, value } = result as { success?: boolean; value?: JsonValue }
  if (success === true) return { ok: true, value: value ?? null }
  return { ok: false, issues: [{ path: '(arguments)', message: 'not what the schema asks for' }] }
}
