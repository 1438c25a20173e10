import { frozenCopy, isJsonObject, type JsonObject, type JsonValue, type RetryHint, reject, toJson } from '../base/index.ts'
import type { ThreadKey } from '../events/index.ts'
import type { HarnessState, Message } from '../messages/index.ts'
import { NO_USAGE, type RunUsage } from '../projections/index.ts'
import { DeferredRequests } from './deferred/index.ts'
import { runError } from './run-errors.ts'

/** Why a run failed, as far as outsiders may know: never a provider's words (state spec §2.2). */
export interface SafeFailure {
  readonly code: string
  readonly message: string
  readonly details: Readonly<JsonObject>
  readonly retryHint: RetryHint
  /** The same run may succeed later. */
  readonly retryable: boolean
}

export type RunStatus = 'completed' | 'suspended' | 'failed' | 'cancelled'

/** Something a result can have later: made when somebody looks. */
export type Lazy<T> = T | (() => T)
const made = <T>(value: Lazy<T>): T => (typeof value === 'function' ? (value as () => T)() : value)

export interface RunResultFields<Wait> {
  status: RunStatus
  thread: ThreadKey
  runId: string
  invocationId: string
  /** Version of the event that ended the run: where its state stands in the log. */
  version: number
  output?: JsonValue
  failure?: { code: string; message: string; details?: JsonObject; retryHint?: RetryHint; retryable?: boolean } | null
  deferred?: Lazy<DeferredRequests> | null
  suspendReason?: 'deferred' | null
  state?: Lazy<HarnessState> | null
  waits?: readonly Wait[]
  usage?: Lazy<RunUsage>
  /** Where in the history the messages of the run begin and end; absent: all of it. */
  before?: Lazy<number>
  after?: Lazy<number>
}

const HINTS: readonly RetryHint[] = ['none', 'new_run', 'dependency_change']

/** Which hint goes with a failure of ours. */
const HINT_OF: Readonly<Record<string, RetryHint>> = {
  usage_limit_exceeded: 'dependency_change',
  agent_run_failed: 'dependency_change',
  model_recovery_exhausted: 'new_run',
}

/**
 * How a run ended. What a status does not have is null (state spec §2.2): `output` of a completed run, `failure` of a failed one, `deferred` and `waits` of a
 * suspended one. Detached: nothing in it is shared with the log.
 */
export class RunResult<Wait = unknown> {
  readonly status: RunStatus
  readonly thread: ThreadKey
  readonly runId: string
  readonly invocationId: string
  readonly version: number
  readonly output: JsonValue
  readonly failure: SafeFailure | null
  readonly suspendReason: 'deferred' | null
  readonly waits: readonly Wait[]
  readonly #fields: RunResultFields<Wait>
  #state: HarnessState | null | undefined
  #deferred: DeferredRequests | null | undefined

  /** @throws ThreadlogError `argument_value_invalid` for a combination that no run ends with */
  constructor(fields: RunResultFields<Wait>) {
    const { status, thread, output = null, failure = null, waits = [] } = fields
    if (thread.thread.trim() === '') throw illegal('thread', 'a thread id')
    if (fields.runId.trim() === '') throw illegal('runId', 'a run id')
    checkFields(fields)
    this.status = status
    this.thread = thread
    this.runId = fields.runId
    this.invocationId = fields.invocationId
    this.version = fields.version
    this.output = frozenCopy(output)
    this.failure = failure && safeFailure(failure)
    this.suspendReason = fields.suspendReason ?? null
    this.waits = waits
    this.#fields = fields
  }

  /** The thread id. */
  get threadId(): string {
    return this.thread.thread
  }

  /** The thread at the end of the run; a completed or suspended run always has one. */
  get state(): HarnessState | null {
    if (this.#state === undefined) this.#state = made(this.#fields.state ?? null)
    return this.#state
  }

  /** What the run waits for, to be answered by `deferredResume`. */
  get deferred(): DeferredRequests | null {
    if (this.#deferred === undefined) this.#deferred = made(this.#fields.deferred ?? null)
    return this.#deferred
  }

  /** Of this run alone. */
  get usage(): RunUsage {
    return made(this.#fields.usage ?? NO_USAGE)
  }

  allMessages(): Message[] {
    return this.state?.messageHistory ?? []
  }

  /** Those this run added. */
  newMessages(): Message[] {
    return this.allMessages().slice(made(this.#fields.before ?? 0), this.#fields.after && made(this.#fields.after))
  }

  /** This result with some fields replaced, checked anew; thread and run stay. */
  replace(
    change: Partial<Pick<RunResultFields<Wait>, 'status' | 'output' | 'failure' | 'deferred' | 'suspendReason' | 'state'>>,
  ): RunResult<Wait> {
    return new RunResult({ ...this.#fields, ...change })
  }

  /** @throws ThreadlogError of kind `RunError`: the failure's own code; `run_suspended`; `run_cancelled` */
  raiseForStatus(): void {
    const { failure } = this
    if (failure)
      throw runError(failure.code, failure.message, {
        retryHint: failure.retryHint,
        details: structuredClone(failure.details) as Record<string, never>,
      })
    if (this.status === 'suspended') throw runError('run_suspended', 'The run waits for an answer.', { retryHint: 'new_run' })
    if (this.status === 'cancelled') throw runError('run_cancelled', 'The run was cancelled.', { retryHint: 'new_run' })
  }

  /** The output of a completed run. @throws as {@link raiseForStatus} */
  outputOrRaise(): JsonValue {
    this.raiseForStatus()
    return this.output
  }

  toJSON(): object {
    const { status, thread, runId, invocationId, version, output, failure, suspendReason, waits } = this
    return { status, thread, runId, invocationId, version, output, failure, suspendReason, waits }
  }
}

const illegal = (path: string, expected: string) => reject('argument_value_invalid', 'No run ends like this.', { path, expected })

function checkFields<Wait>(o: RunResultFields<Wait>): void {
  const has = {
    state: o.state !== undefined && o.state !== null,
    output: o.output !== undefined && o.output !== null,
    failure: o.failure !== undefined && o.failure !== null,
    deferred: o.deferred !== undefined && o.deferred !== null,
    suspendReason: o.suspendReason !== undefined && o.suspendReason !== null,
  }
  const allowed: Record<RunStatus, { needs: (keyof typeof has)[]; may: (keyof typeof has)[] }> = {
    completed: { needs: ['state'], may: ['output'] },
    suspended: { needs: ['state', 'deferred', 'suspendReason'], may: [] },
    failed: { needs: ['failure'], may: ['state'] },
    cancelled: { needs: [], may: ['state'] },
  }
  const rule = Object.hasOwn(allowed, o.status) ? allowed[o.status] : undefined
  if (!rule) throw illegal('status', Object.keys(allowed).join(', '))
  for (const field of rule.needs) if (!has[field]) throw illegal(field, `${field} of a ${o.status} run`)
  for (const [field, present] of Object.entries(has))
    if (present && ![...rule.needs, ...rule.may].includes(field as keyof typeof has))
      throw illegal(field, `nothing in a ${o.status} run`)
  if (has.suspendReason && o.suspendReason !== 'deferred') throw illegal('suspendReason', '`deferred`')
  if (has.deferred && typeof o.deferred !== 'function' && !(o.deferred instanceof DeferredRequests))
    throw illegal('deferred', 'DeferredRequests')
  if (has.state && typeof o.state !== 'function' && o.state?.threadId !== o.thread.thread)
    throw illegal('state', "the thread's own state")
}

/** @throws ThreadlogError `argument_value_invalid` */
function safeFailure(o: NonNullable<RunResultFields<never>['failure']>): SafeFailure {
  const { code, message, details = {}, retryable = false } = o
  const retryHint = o.retryHint ?? HINT_OF[code] ?? (retryable ? 'new_run' : 'none')
  if (typeof code !== 'string' || code === '') throw illegal('failure.code', 'a code')
  if (typeof message !== 'string' || message === '') throw illegal('failure.message', 'a message')
  if (!isJsonObject(details)) throw illegal('failure.details', 'an object')
  if (!HINTS.includes(retryHint)) throw illegal('failure.retryHint', HINTS.join(', '))
  return frozenCopy({ code, message, details: toJson(details) as JsonObject, retryHint, retryable })
}
