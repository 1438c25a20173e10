import { z } from 'zod'
import { checkOptions, type JsonObject, type JsonValue, reject } from '../base/index.ts'
import { HUMAN_PROVIDER, nameSchema } from '../continuations/index.ts'

/** What a capability can do with its namespace; the last write wins, and each is written as an event when the run next commits. */
export interface CapabilityStore {
  read<T extends z.ZodType>(o: { id: string; version: string; schema: T }): z.output<T> | null
  write(o: { id: string; version: string; value: unknown; schema?: z.ZodType }): void
  delete(id: string): void
}

/** What a tool body is given beside its arguments. */
export interface ToolContext {
  /** The same for every dispatch of one call, replays included (R13). Hand it to whatever can refuse a repetition. */
  idempotencyKey: string
  callId: string
  /** Aborts on cancel, on timeout and when this attempt is no longer the current one. */
  signal: AbortSignal
  /** What the caller bound to this run; never in the log. */
  deps: unknown
  /** True when a person approved this very call. */
  approved: boolean
  /** What came with the answer to this call, beside it. */
  metadata: JsonObject
  /** The namespaces of the thread; what is written enters the log together with the outcome of this call, or of one before it. */
  capabilities: CapabilityStore
}

/** What a submission is given beside its arguments. */
export type SubmissionContext = Pick<ToolContext, 'idempotencyKey' | 'callId' | 'signal' | 'deps'>

/** When a job that failed with `retryable: true` is submitted again. */
export interface Resubmission {
  /** Further jobs at most, from 1. */
  readonly attempts: number
  /** Milliseconds from where a run takes the failure to the n-th further job, from 1; a pure function. */
  delayMs(attempt: number): number
}

/** 1 s, doubling, 5 min at most. */
const RESUBMISSION_DELAY_MS = (attempt: number): number => Math.min(300_000, 1_000 * 2 ** (attempt - 1))
const MAX_RESUBMISSIONS = 100

export interface ToolIssue {
  path: string
  message: string
}
export type Validated = { ok: true; value: JsonValue } | { ok: false; issues: ToolIssue[] }

/** A tool as the harness sees it, however it was declared. */
export interface Tool {
  readonly kind: 'local' | 'external'
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments, as the model sees it. */
  readonly inputSchema: JsonObject
  /** Checks and coerces arguments; synchronous, so that a decision can be made in one piece. */
  validate(args: JsonObject): Validated
  needsApproval(args: JsonValue): boolean
  /** Local tools. */
  readonly execute?: (args: JsonValue, context: ToolContext) => unknown
  /** Never in parallel with other calls. */
  readonly sequential: boolean
  /** May be run again when nobody knows whether it ran (`toolRecovery: 'declared'`). */
  readonly retryable: boolean
  /** True if every call needs approval: such a tool is not offered to a run that cannot wait. */
  readonly asksAlways?: boolean
  /** Stable identity, in place of the one made of kind and name. */
  readonly identity?: string
  /** Milliseconds after which a running call is given up, or none. */
  readonly timeoutMs: number | undefined
  /** External tools: begins the job in this process, and answers with the id under which its result will come. */
  readonly submit?: (args: JsonValue, context: SubmissionContext) => unknown
  /** External tools with `submit`: another job for one that has failed for the time being. */
  readonly resubmit?: Resubmission
  /** External tools: who answers. */
  readonly provider?: string
  /** External tools: JSON Schema of an accepted result, and its check. */
  readonly resultSchema?: JsonObject
  readonly validateResult?: (value: JsonValue) => Promise<JsonValue>
  /** Milliseconds from the request to its deadline. */
  readonly deadlineMs?: number
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/

/** @throws ThreadlogError `tool_name_invalid` */
export function checkToolName(name: string): void {
  if (!NAME.test(name))
    throw reject('tool_name_invalid', 'The tool name is not usable.', {
      path: 'name',
      expected: 'a letter or underscore, then letters, digits, `_`, `.`, `-`; at most 128',
    })
}

/** JSON Schema of a zod type, as models and result ids want it. */
export function jsonSchema(type: z.ZodType, io: 'input' | 'output'): JsonObject {
  try {
    const { $schema: _, ...schema } = z.toJSONSchema(type, { io }) as JsonObject
    return schema
  } catch {
    throw reject('tool_schema_unsupported', 'A schema of the tool has no JSON form, so no model can be told of it.', {
      path: io,
      expected: 'types that JSON has: no dates, maps, functions or transforms without an input form',
    })
  }
}

const issuesOf = (issues: readonly z.core.$ZodIssue[]): ToolIssue[] =>
  issues.map((issue) => ({ path: issue.path.map(String).join('.') || '(arguments)', message: issue.message }))

/** Synchronous check by a zod type. */
export function validator(input: z.ZodType): Tool['validate'] {
  return (args) => {
    const result = z.safeParse(input, args)
    return result.success ? { ok: true, value: result.data as JsonValue } : { ok: false, issues: issuesOf(result.error.issues) }
  }
}

/**
 * A tool this process runs.
 * @param o.input zod schema of the arguments; synchronous checks only
 * @param o.needsApproval a person must approve each call, or those for which the function says so
 * @param o.sequential never runs beside another call of the same response
 * @param o.recovery `'retryable'`: safe to run again after a crash, under the same idempotency key
 * @param o.timeoutMs milliseconds; a call that takes longer settles as failed
 * @param o.identity what a waiting call knows the tool by; default `tool/local/<name>`
 * @throws ThreadlogError `tool_name_invalid`
 */
export function defineTool<Input extends z.ZodType>(o: {
  name: string
  description: string
  input: Input
  execute: (args: z.output<Input>, context: ToolContext) => unknown
  needsApproval?: boolean | ((args: z.output<Input>) => boolean)
  sequential?: boolean
  recovery?: 'retryable'
  timeoutMs?: number
  identity?: string
}): Tool {
  checkOptions(o)
  checkToolName(o.name)
  const { needsApproval = false, identity } = o
  return {
    kind: 'local',
    name: o.name,
    description: o.description,
    inputSchema: jsonSchema(o.input, 'input'),
    validate: validator(o.input),
    asksAlways: needsApproval === true,
    ...(identity === undefined ? {} : { identity }),
    needsApproval: (args) => (typeof needsApproval === 'function' ? needsApproval(args as z.output<Input>) : needsApproval),
    execute: o.execute as Tool['execute'],
    sequential: o.sequential ?? false,
    retryable: o.recovery === 'retryable',
    timeoutMs: o.timeoutMs,
  }
}

/**
 * A tool whose result comes from outside: the thread suspends, a request goes out, and any system may produce the result.
 * @param o.provider who answers: a letter a–z, then up to 127 of a–z, 0–9, `_`, `.`, `-`
 * @param o.result zod schema of an accepted result; absent = any JSON
 * @param o.deadlineMs milliseconds from the request; told to the provider, and from then on the wait
 *   may expire: the call has failed with code `expired`
 * @param o.recovery `'retryable'`: a call that nobody answered may be asked for again
 * @param o.submit begins the job from this process, once its dispatch is in the log, and answers with the id under which the provider will send the
 *   result. After a crash it is called again with the same `idempotencyKey`: the provider must then give the same job's id. An id for which
 *   another wait of the application and provider stands fails the call with `external_id_taken`
 * @param o.resubmit with `submit`: a job whose failure says `retryable` is followed by another one, `attempts` times at most, after `delayMs(n)`
 *   milliseconds (1 s, doubling to 5 min). Each further job has an idempotency key of its own. Default: the model reads the failure
 * @throws ThreadlogError `tool_name_invalid`, `provider_name_invalid`, `deadline_invalid`, `resubmit_invalid`
 */
export function externalTool<Input extends z.ZodType, Result extends z.ZodType>(o: {
  name: string
  description: string
  input: Input
  provider: string
  result?: Result
  deadlineMs?: number
  recovery?: 'retryable'
  submit?: (
    args: z.output<Input>,
    context: SubmissionContext,
  ) => { readonly externalId: string } | Promise<{ readonly externalId: string }>
  resubmit?: { attempts: number; delayMs?: (attempt: number) => number }
}): Tool {
  checkOptions(o)
  checkToolName(o.name)
  if (!nameSchema.safeParse(o.provider).success || o.provider === HUMAN_PROVIDER)
    throw reject('provider_name_invalid', 'The provider name is not usable.', {
      path: 'provider',
      expected: 'a–z, then up to 127 of a–z, 0–9, `_`, `.`, `-`; not `human`, which is the provider of approvals and answers',
    })
  const { result } = o
  return {
    kind: 'external',
    name: o.name,
    description: o.description,
    inputSchema: jsonSchema(o.input, 'input'),
    validate: validator(o.input),
    needsApproval: () => false,
    sequential: false,
    retryable: o.recovery === 'retryable',
    timeoutMs: undefined,
    ...(o.submit ? { submit: o.submit as NonNullable<Tool['submit']> } : {}),
    ...(o.resubmit === undefined ? {} : { resubmit: resubmission(o) }),
    provider: o.provider,
    resultSchema: result ? jsonSchema(result, 'output') : {},
    validateResult: result ? async (value) => (await result.parseAsync(value)) as JsonValue : undefined,
    deadlineMs: o.deadlineMs === undefined ? undefined : deadlineOf(o.deadlineMs, 'deadlineMs'),
  }
}

function resubmission({
  resubmit,
  submit,
}: {
  resubmit?: { attempts: number; delayMs?: (attempt: number) => number }
  submit?: unknown
}): Resubmission {
  const { attempts, delayMs = RESUBMISSION_DELAY_MS } = resubmit ?? { attempts: 0 }
  const isUsable = submit !== undefined && Number.isSafeInteger(attempts) && attempts >= 1 && attempts <= MAX_RESUBMISSIONS
  if (!isUsable || typeof delayMs !== 'function')
    throw reject('resubmit_invalid', 'The resubmission is not usable.', {
      path: 'resubmit',
      expected: `with \`submit\`: attempts from 1 to ${MAX_RESUBMISSIONS}, and delayMs a function`,
    })
  const bounded = (attempt: number) => {
    const ms = delayMs(attempt)
    return Number.isFinite(ms) && ms >= 0 ? ms : RESUBMISSION_DELAY_MS(attempt)
  }
  return { attempts, delayMs: bounded }
}

/** Milliseconds from a request to its deadline. @throws ThreadlogError `deadline_invalid` */
export function deadlineOf(ms: number, path: string): number {
  if (Number.isSafeInteger(ms) && ms > 0) return ms
  throw reject('deadline_invalid', 'The deadline is not usable.', { path, expected: 'a whole number of milliseconds above 0' })
}

/** The same tool, marked as safe to run again after a crash; the given one stays as it is (state spec §4.3). */
export const recoveryRetryable = (tool: Tool): Tool => ({ ...tool, retryable: true })
