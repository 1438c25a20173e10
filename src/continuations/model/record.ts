import { inspect } from 'node:util'
import { frozen, type JsonValue } from '../../base/index.ts'
import { checkArgument, externalIdSchema, nameSchema, schemaIdSchema } from '../names.ts'
import { instantOrNull, invalidArgument, jsonValue, nonBlank } from './arguments.ts'
import { ContinuationFailure } from './failure.ts'
import { PrincipalGrantSnapshot } from './grants.ts'
import { ResumeArtifact } from './resume.ts'
import { RunScope, type RunScopeFields } from './scope.ts'

export const STATUSES = ['pending', 'completed', 'failed', 'claimed'] as const
export type ContinuationStatus = (typeof STATUSES)[number]

/** What a record is made of. All but the first nine may be left out. */
export interface ContinuationFields extends RunScopeFields {
  continuationId: string
  provider: string
  capability: string
  schemaId: string
  resume?: ResumeArtifact | null
  principalGrants?: PrincipalGrantSnapshot | null
  status?: ContinuationStatus
  ready?: boolean
  revision?: number
  result?: JsonValue
  failure?: ContinuationFailure | null
  /** UTC, ISO 8601; not checked. */
  createdAt?: string
  updatedAt?: string
}

/** What a waiting run says to the outside of what it waits for. */
export interface PendingAction {
  readonly type: 'external_continuation' | 'human_approval' | 'client_tool'
  readonly actionId: string
  readonly capability: string
}

const FIELDS: Record<keyof ContinuationFields, string> = {
  continuationId: 'continuation_id',
  applicationId: 'application_id',
  userId: 'user_id',
  sessionId: 'session_id',
  runId: 'run_id',
  provider: 'provider',
  capability: 'capability',
  schemaId: 'schema_id',
  resume: 'resume',
  principalGrants: 'principal_grants',
  status: 'status',
  ready: 'ready',
  revision: 'revision',
  result: 'result',
  failure: 'failure',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
}

/**
 * One durable wait (continuation spec §1.2): frozen, and detached from what it was made of. The external id is not part of it; it stands
 * beside it in {@link ProviderPendingContinuation}. Shown as text, it gives away neither grants nor outcome.
 */
export class ContinuationRecord {
  readonly continuationId: string
  readonly applicationId: string
  readonly userId: string
  readonly sessionId: string
  readonly runId: string
  readonly provider: string
  readonly capability: string
  readonly schemaId: string
  readonly resume: ResumeArtifact | null
  readonly principalGrants: PrincipalGrantSnapshot | null
  readonly status: ContinuationStatus
  readonly ready: boolean
  readonly revision: number
  readonly result: JsonValue
  readonly failure: ContinuationFailure | null
  readonly createdAt: string
  readonly updatedAt: string

  /** @throws ThreadlogError `invalid_argument` with the field */
  constructor(o: ContinuationFields) {
    for (const key of Object.keys(o)) if (!Object.hasOwn(FIELDS, key)) throw invalidArgument(key, Object.keys(FIELDS).join(', '))
    const { resume = null, principalGrants = null, status = 'pending', ready = false, revision = 0, failure = null } = o
    this.continuationId = nonBlank(o.continuationId, 'continuationId')
    this.applicationId = nonBlank(o.applicationId, 'applicationId')
    this.userId = nonBlank(o.userId, 'userId')
    this.sessionId = nonBlank(o.sessionId, 'sessionId')
    this.runId = nonBlank(o.runId, 'runId')
    this.provider = checkArgument(nameSchema, o.provider, 'provider')
    this.capability = checkArgument(nameSchema, o.capability, 'capability')
    this.schemaId = checkArgument(schemaIdSchema, o.schemaId, 'schemaId')
    this.resume = orNull(resume, ResumeArtifact, 'resume')
    this.principalGrants = orNull(principalGrants, PrincipalGrantSnapshot, 'principalGrants')
    if (!STATUSES.includes(status)) throw invalidArgument('status', STATUSES.join(', '))
    this.status = status
    if (typeof ready !== 'boolean') throw invalidArgument('ready', 'true or false')
    this.ready = ready
    if (!Number.isSafeInteger(revision) || revision < 0) throw invalidArgument('revision', 'a whole number from 0')
    this.revision = revision
    this.result = frozen(jsonValue(o.result ?? null))
    this.failure = orNull(failure, ContinuationFailure, 'failure')
    checkOutcome(this)
    this.createdAt = o.createdAt ?? now()
    this.updatedAt = o.updatedAt ?? now()
    Object.freeze(this)
  }

  /** Reads the original's snake_case form. @throws ThreadlogError `invalid_argument` */
  static parse(value: unknown): ContinuationRecord {
    if (typeof value !== 'object' || value === null) throw invalidArgument('record', 'an object')
    const wire = value as Record<string, unknown>
    const known = Object.fromEntries(Object.entries(FIELDS).map(([name, key]) => [key, name]))
    const fields = Object.fromEntries(Object.entries(wire).map(([key, item]) => [known[key] ?? key, item]))
    const read = <T>(field: unknown, parse: (field: unknown) => T): T | null =>
      field === undefined || field === null ? null : parse(field)
    return new ContinuationRecord({
      ...(fields as unknown as ContinuationFields),
      resume: read(fields['resume'], ResumeArtifact.parse),
      principalGrants: read(fields['principalGrants'], PrincipalGrantSnapshot.parse),
      failure: read(fields['failure'], ContinuationFailure.parse),
    })
  }

  get scope(): RunScope {
    return new RunScope(this)
  }

  get pendingAction(): PendingAction {
    return Object.freeze({ type: 'external_continuation', actionId: this.continuationId, capability: this.capability })
  }

  /** This record with some fields replaced, checked anew. */
  with(change: Partial<ContinuationFields>): ContinuationRecord {
    const fields = Object.fromEntries(Object.keys(FIELDS).map((name) => [name, this[name as keyof ContinuationFields]]))
    return new ContinuationRecord({ ...(fields as unknown as ContinuationFields), ...change })
  }

  toJSON(): Record<string, JsonValue> {
    return Object.fromEntries(
      Object.entries(FIELDS).map(([name, key]) => {
        const value = this[name as keyof ContinuationFields]
        return [key, structuredClone(hasJson(value) ? value.toJSON() : value) as JsonValue]
      }),
    )
  }

  [inspect.custom](): string {
    const { continuationId, provider, capability, status, ready, revision } = this
    return `ContinuationRecord ${inspect({ continuationId, provider, capability, status, ready, revision })}`
  }
}

/** A record in any status, and the provider's own id of its job: the one place where the two stand together (§1.4). */
export class ProviderPendingContinuation {
  readonly record: ContinuationRecord
  readonly externalId: string
  /** Epoch milliseconds from which on it may expire; null: never. Not part of the original's form. */
  readonly expiresAt: number | null

  constructor(o: { record: ContinuationRecord; externalId: string; expiresAt?: number | null }) {
    this.record = o.record
    this.expiresAt = instantOrNull(o.expiresAt, 'expiresAt')
    this.externalId = checkArgument(externalIdSchema, o.externalId, 'externalId')
    Object.freeze(this)
  }

  toJSON(): { record: Record<string, JsonValue>; external_id: string } {
    return { record: this.record.toJSON(), external_id: this.externalId }
  }

  [inspect.custom](): string {
    return `ProviderPendingContinuation { ${inspect(this.record)} }`
  }
}

function checkOutcome({ status, result, failure }: ContinuationRecord): void {
  const fits = {
    pending: result === null && failure === null,
    completed: failure === null,
    failed: failure !== null && result === null,
    claimed: result === null || failure === null,
  }[status]
  if (!fits) throw invalidArgument('result', `an outcome that a ${status} continuation can have`)
}

function orNull<T>(value: T | null, type: new (...args: never[]) => T, path: string): T | null {
  if (value === null || value instanceof type) return value
  throw invalidArgument(path, `a ${type.name} or null`)
}

const hasJson = (value: unknown): value is { toJSON(): unknown } =>
  typeof value === 'object' && value !== null && 'toJSON' in value

const now = (): string => `${new Date().toISOString().slice(0, -1)}000+00:00`
