import {
  type AuditRecord,
  ContinuationFailure,
  ContinuationProvider,
  type ContinuationRecord,
  type LogContinuationStore,
  PrincipalGrantSnapshot,
  ProviderPendingContinuation,
  ResumeArtifact,
  RunScope,
} from '../../../../src/continuations/index.ts'
import { type Fixture, recordForm, recordOf, scopeForm } from './helpers.ts'
import { live, outcome, Skip } from './values.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
type Any = any
type Audited = LogContinuationStore & { readonly lines: AuditRecord[] }
/** Makes an empty store whose audit lines are kept. */
export type OpenStore = () => Promise<{ store: Audited; close(): Promise<void> }>

/** Runs the operations of a vector on an empty store (README, "Sequences"). */
export async function runSequence(vector: Any, fixture: Fixture, open: OpenStore): Promise<{ ops: unknown[]; final?: unknown }> {
  const { store, close } = await open()
  try {
    const run = new Sequence(store, fixture)
    const ops: unknown[] = []
    for (const op of vector.ops) ops.push(await run.step(op))
    return { ops, final: await run.final(vector.ops) }
  } finally {
    await close()
  }
}

const byCodePoint = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

export class Sequence {
  readonly #store: Audited
  readonly #fixture: Fixture
  readonly #saved = new Map<string, ContinuationRecord>()
  /** Generated ids, in the order their suspensions succeeded. */
  readonly generated: string[] = []
  readonly #suspended: ContinuationRecord[] = []
  #validatorCalls = 0

  constructor(store: Audited, fixture: Fixture) {
    this.#store = store
    this.#fixture = fixture
  }

  async step(op: Any): Promise<Record<string, unknown>> {
    this.#validatorCalls = 0
    const from = this.#store.lines.length
    const result = op.op === 'gather' ? { all: await this.#gather(op.ops) } : await this.#outcome(op)
    const audit = this.#store.lines.slice(from).map(({ attributes }) => [attributes.operation, attributes.outcome])
    if (op.op === 'gather') audit.sort((a, b) => (String(a) < String(b) ? -1 : 1))
    return {
      ...result,
      ...(audit.length > 0 ? { audit } : {}),
      ...(this.#validatorCalls > 0 ? { validator_calls: this.#validatorCalls } : {}),
    }
  }

  async #gather(ops: Any[]): Promise<unknown[]> {
    let settled: () => void = () => {}
    this.#others = new Promise<void>((resolve) => (settled = resolve))
    const isSlow = (op: Any) => op.validator?.kind === 'async-slow'
    const results = ops.map((op) => outcome(() => this.#run(op)))
    void Promise.all(results.filter((_, i) => !isSlow(ops[i]))).then(settled, settled)
    const done = await Promise.all(results)
    for (const [i, result] of done.entries()) this.#note(ops[i], result)
    return done.map((result) => ('value' in result ? { value: this.#form(result.value) } : result))
  }
  #others: Promise<void> = Promise.resolve()

  async #outcome(op: Any): Promise<Record<string, unknown>> {
    const result = await outcome(() => this.#run(op))
    this.#note(op, result)
    return 'value' in result ? { value: this.#form(result.value) } : result
  }

  #note(op: Any, result: { value: unknown } | { error: string }): void {
    if ('error' in result) return
    const { value } = result
    const record = value instanceof ProviderPendingContinuation ? value.record : (value as ContinuationRecord)
    if (op.op === 'suspend') this.generated.push(record.continuationId)
    if (op.op === 'suspend' || op.op === 'store.suspend') this.#suspended.push(record)
    if (op.save) this.#saved.set(op.save, record)
  }

  #scope(scope: Any): RunScope {
    const parts = live(typeof scope === 'string' ? this.#fixture.scopes[scope] : scope) as string[]
    const [applicationId, userId, sessionId, runId] = parts
    return new RunScope({ applicationId, userId, sessionId, runId } as RunScope)
  }

  /** The last three parts: the application is the provider's own, and the provider checks them. */
  #runOf(scope: Any) {
    const parts = live(typeof scope === 'string' ? this.#fixture.scopes[scope] : scope) as string[]
    return { userId: parts[1] as string, sessionId: parts[2] as string, runId: parts[3] as string }
  }

  #provider(name: string): ContinuationProvider {
    const [applicationId, provider] = this.#fixture.providers[name] as [string, string]
    return new ContinuationProvider({ store: this.#store, applicationId, provider })
  }

  #record(reference: Any): ContinuationRecord {
    if (reference.$record) return recordOf(reference.$record, this.#fixture)
    const saved = this.#saved.get(reference.$saved) as ContinuationRecord
    if (!reference.with) return saved
    const camel = Object.entries(reference.with).map(([key, value]) => {
      const name = key.replace(/_([a-z])/g, (_m, letter: string) => letter.toUpperCase())
      if (key === 'resume') return [name, this.#resume(value)]
      return [name, this.#value(value)]
    })
    return saved.with(Object.fromEntries(camel))
  }

  #value(value: Any): unknown {
    if (value?.$id) return this.#saved.get(value.$id)?.continuationId
    if (value?.$revision) return this.#saved.get(value.$revision)?.revision
    return live(value)
  }

  #number(value: Any): number {
    if (value?.$float) throw new Skip('JavaScript has one type of number')
    return this.#value(value) as number
  }

  #resume(value: Any): Any {
    if (value === null || value === undefined) return value
    if (typeof value === 'string') return ResumeArtifact.parse(this.#fixture.resumes[value])
    return '$raw' in value ? live(value) : ResumeArtifact.parse(live(value))
  }

  #failure(value: Any): Any {
    if (value === null || value === undefined) return value
    return '$raw' in value ? live(value) : new ContinuationFailure(live(value) as { code: string })
  }

  #grants(value: Any): Any {
    if (value === null || value === undefined) return value
    return '$raw' in value ? live(value) : PrincipalGrantSnapshot.parse(live(value))
  }

  #validator(spec: Any): Any {
    const { kind } = spec
    if (kind === 'not-callable') return live(spec.value)
    const plain = (kind as string).replace(/^async-/, '')
    const act = (value: Any): unknown => {
      this.#validatorCalls++
      if (plain === 'return') return live(spec.value)
      if (plain === 'pick') {
        if (!Object.hasOwn(value, spec.key)) throw new Error('no such key')
        return value[spec.key]
      }
      if (plain === 'throw') throw new Error('refused')
      if (plain === 'throw-conflict') throw new ContinuationFailure({ code: 'stands_for_a_conflict' })
      if (plain === 'mutate-input') {
        value.touched = true
        return { kept: Object.keys(value) }
      }
      return value
    }
    if (kind === 'nested-awaitable') return (value: Any) => act(value)
    if (kind === 'async-slow')
      return async (value: Any) => {
        const accepted = act(value)
        await this.#others
        return accepted
      }
    return (kind as string).startsWith('async-') ? async (value: Any) => act(value) : act
  }

  async #run(op: Any): Promise<unknown> {
    const store = this.#store
    const text = (value: Any) => this.#value(value) as string
    const at = () => ({
      scope: this.#scope(op.scope),
      provider: text(op.provider_id ?? op.provider),
      continuationId: text(op.continuation_id),
      expectedRevision: this.#value(op.expected_revision) as number,
    })
    switch (op.op) {
      case 'begin_run':
        return store.beginRun({ scope: this.#scope(op.scope), framework: op.framework ?? 'langgraph' })
      case 'get_run':
        return store.getRun(this.#scope(op.scope))
      case 'delete_run':
        return store.deleteRun(this.#scope(op.scope))
      case 'transition': {
        const action = op.pending_action
        const pendingAction = action && { type: action.type, actionId: action.action_id, capability: action.capability }
        const move = { expectedStatus: op.expected_status, status: op.status, pendingAction: pendingAction ?? null }
        return store.transitionRun({ scope: this.#scope(op.scope), ...move })
      }
      case 'put_checkpoint': {
        const { checkpointId, revision } = await store.putCheckpoint({
          scope: this.#scope(op.scope),
          checkpointId: op.checkpoint_id,
          expectedRevision: op.expected_revision ?? null,
          payload: {},
        })
        return { checkpoint_id: checkpointId, revision }
      }
      case 'suspend':
        return this.#provider(op.provider).suspend({
          ...this.#runOf(op.scope),
          externalId: text(op.external_id),
          capability: text(op.capability),
          schemaId: text(op.schema_id),
          resume: this.#resume(op.resume),
          principalGrants: this.#grants(op.principal_grants),
        })
      case 'lookup':
        return this.#provider(op.provider).lookup({ externalId: text(op.external_id) })
      case 'get':
        return this.#provider(op.provider).get({ ...this.#runOf(op.scope), continuationId: text(op.continuation_id) })
      case 'get_pending':
        return this.#provider(op.provider).getPending({ ...this.#runOf(op.scope), continuationId: text(op.continuation_id) })
      case 'list_pending':
        return this.#provider(op.provider).listPending({
          ...('after' in op ? { after: this.#value(op.after) as string } : {}),
          ...('limit' in op ? { limit: this.#number(op.limit) } : {}),
        })
      case 'complete':
        return this.#provider(op.provider).complete({
          ...this.#runOf(op.scope),
          externalId: text(op.external_id),
          schemaId: text(op.schema_id),
          result: live(op.result),
          validate: this.#validator(op.validator),
        })
      case 'fail':
        return this.#provider(op.provider).fail({
          ...this.#runOf(op.scope),
          externalId: text(op.external_id),
          schemaId: text(op.schema_id),
          failure: this.#failure(op.failure),
        })
      case 'claim':
        return this.#provider(op.provider).claim({
          ...this.#runOf(op.scope),
          continuationId: text(op.continuation_id),
          expectedRevision: this.#number(op.expected_revision),
        })
      case 'arm':
        return this.#provider(op.provider).arm(this.#record(op.record))
      case 'cancel':
        return this.#provider(op.provider).cancel({ record: this.#record(op.record), failure: this.#failure(op.failure) })
      case 'store.suspend':
        return store.suspendContinuation({ record: this.#record(op.record), externalId: text(op.external_id) })
      case 'store.get':
        return store.getContinuation({ scope: this.#scope(op.scope), continuationId: text(op.continuation_id) })
      case 'store.get_provider':
        return store.getProviderContinuation(at())
      case 'store.lookup':
        return store.getContinuationByExternalId({
          applicationId: text(op.application_id),
          provider: text(op.provider_id ?? op.provider),
          externalId: text(op.external_id),
        })
      case 'store.list_pending':
        return store.listPendingContinuations({
          applicationId: text(op.application_id),
          provider: text(op.provider_id ?? op.provider),
          after: (this.#value(op.after) as string | undefined) ?? null,
          ...('limit' in op ? { limit: this.#value(op.limit) as number } : {}),
        })
      case 'store.resolve':
        return store.resolveContinuation({
          scope: this.#scope(op.scope),
          provider: text(op.provider_id ?? op.provider),
          externalId: text(op.external_id),
          schemaId: text(op.schema_id),
          result: live(op.result),
          failure: this.#failure(op.failure),
        })
      case 'store.claim':
        return store.claimContinuation(at())
      case 'store.arm':
        return store.armContinuation(at())
      case 'store.cancel':
        return store.cancelContinuation({ ...at(), failure: this.#failure(op.failure) })
      default:
        throw new Error(`unknown operation ${op.op}`)
    }
  }

  #id(id: string): string {
    const place = this.generated.indexOf(id)
    return place < 0 ? id : `<id:${place + 1}>`
  }

  #form(value: Any): unknown {
    if (value === null || value === undefined) return null
    if (Array.isArray(value)) return this.#page(value)
    if (value instanceof ProviderPendingContinuation) return { record: this.#form(value.record), external_id: value.externalId }
    if ('checkpoint_id' in value) return value
    if ('framework' in value) return this.#runForm(value)
    const form = recordForm(value as ContinuationRecord, this.#fixture)
    return { ...form, continuation_id: this.#id(form['continuation_id'] as string) }
  }

  #runForm(run: Any): unknown {
    const { framework, status, revision, pendingAction } = run
    const action = pendingAction && {
      type: pendingAction.type,
      action_id: this.#id(pendingAction.actionId),
      capability: pendingAction.capability,
    }
    return { scope: scopeForm(run, this.#fixture), framework, status, revision, ...(action ? { pending_action: action } : {}) }
  }

  #page(pairs: ProviderPendingContinuation[]): unknown {
    const generated = pairs.some(({ record }) => this.generated.includes(record.continuationId))
    if (pairs.length === 100 && !generated) return { $ids: pairs.map(({ record }) => record.continuationId) }
    const forms = pairs.map((pair) => this.#form(pair) as { external_id: string })
    if (!generated) return forms
    return { unordered: forms.sort((a, b) => (a.external_id < b.external_id ? -1 : 1)) }
  }

  async final(ops: Any[]): Promise<unknown> {
    const runs: Record<string, unknown> = {}
    const flat = ops.flatMap((op) => (op.op === 'gather' ? op.ops : [op]))
    for (const { scope } of flat)
      if (typeof scope === 'string') runs[scope] = this.#form(await this.#store.getRun(this.#scope(scope)))
    const waits: Record<string, unknown> = {}
    for (const record of this.#suspended) {
      const { scope, provider, continuationId } = record
      waits[this.#id(continuationId)] = this.#form(await this.#store.getProviderContinuation({ scope, provider, continuationId }))
    }
    const pending: Record<string, unknown> = {}
    for (const name of Object.keys(this.#fixture.providers)) {
      const ids: string[] = []
      const provider = this.#provider(name)
      for (let page = await provider.listPending(); page.length > 0; ) {
        ids.push(...page.map(({ record }) => this.#id(record.continuationId)))
        page = await provider.listPending({ after: page.at(-1)?.record.continuationId as string })
      }
      if (ids.length > 0) pending[name] = ids.sort(byCodePoint)
    }
    return { runs, waits, pending }
  }
}
