import { equal } from 'node:assert/strict'
import {
  ContinuationFailure,
  ContinuationProvider,
  ContinuationRecord,
  continuationSchemaId,
  continuationSchemaIdOfText,
  externalIdKey,
  isBlank,
  jsonValue,
  PrincipalGrantSnapshot,
  ResumeArtifact,
  RunScope,
  submissionKey,
} from '../../../../src/continuations/index.ts'
import { jsonText, live, outcome, Skip } from './values.ts'

// Kinds that need no store (README, "Helper kinds"): each gives the outcome that `expect` is compared with.

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
type Any = any
export type Fixture = { scopes: Record<string, string[]>; providers: Record<string, string[]>; resumes: Record<string, Any> }
export type Outcome = { value: unknown } | { error: string }
type Helper = (v: Any, fixture: Fixture) => Promise<Outcome>

const resumeOf = (args: Any): ResumeArtifact =>
  new ResumeArtifact({
    framework: args.framework,
    nativeInvocationId: args.native_invocation_id,
    toolCallId: args.tool_call_id,
    toolName: args.tool_name,
    ...('version' in args ? { version: args.version } : {}),
  })

/** Built, unless the vector wants the raw value passed. */
const built = <T>(value: Any, build: (value: Any) => T): T | null | undefined => {
  if (value === undefined || value === null) return value
  return typeof value === 'object' && '$raw' in value ? (live(value) as T) : build(live(value))
}

/** A record from a vector's fields; a scope may be a name or four texts. */
export function recordOf(f: Any, fixture: Fixture): ContinuationRecord {
  const { scope, resume, principal_grants, failure, continuation_id, schema_id, ...rest } = f
  const parts = live(typeof scope === 'string' ? fixture.scopes[scope] : scope) as string[]
  const [applicationId, userId, sessionId, runId] = parts
  const fields = {
    ...(live(rest) as object),
    ...('continuation_id' in f ? { continuationId: live(continuation_id) } : {}),
    ...('schema_id' in f ? { schemaId: live(schema_id) } : {}),
    ...{ applicationId, userId, sessionId, runId },
    ...(resume === undefined
      ? {}
      : {
          resume:
            typeof resume === 'string' ? ResumeArtifact.parse(fixture.resumes[resume]) : built(resume, ResumeArtifact.parse),
        }),
    ...(principal_grants === undefined ? {} : { principalGrants: built(principal_grants, PrincipalGrantSnapshot.parse) }),
    ...(failure === undefined ? {} : { failure: built(failure, (value) => new ContinuationFailure(value)) }),
  }
  return new ContinuationRecord(fields as ConstructorParameters<typeof ContinuationRecord>[0])
}

/** The normal form of a record (README, "Normal form of returned values"). */
export function recordForm(record: ContinuationRecord, fixture: Fixture): Record<string, unknown> {
  const wire = record.toJSON()
  const { continuation_id, provider, capability, schema_id, status, ready, revision, resume, principal_grants, result, failure } =
    wire
  const named = Object.entries(fixture.resumes ?? {}).find(([, known]) => JSON.stringify(known) === JSON.stringify(resume))
  const optional = { resume: named ? named[0] : resume, principal_grants, result, failure }
  return {
    continuation_id,
    scope: scopeForm(record, fixture),
    ...{ provider, capability, schema_id, status, ready, revision },
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== null)),
  }
}

export function scopeForm(
  o: { applicationId: string; userId: string; sessionId: string; runId: string },
  fixture: Fixture,
): string | string[] {
  const parts = [o.applicationId, o.userId, o.sessionId, o.runId]
  const named = Object.entries(fixture.scopes ?? {}).find(([, known]) => JSON.stringify(known) === JSON.stringify(parts))
  return named ? named[0] : parts
}

const noStore = {} as ConstructorParameters<typeof ContinuationProvider>[0]['store']

/** A class of the caller's own, as the original's principal is. */
const principal = (permissions: string[]) => ({ id: 'caller', permissions })

export const helpers: Record<string, Helper> = {
  'schema-id': (v) =>
    outcome(() => {
      const text = jsonText(v.schema)
      return text === undefined ? continuationSchemaId(live(v.schema)) : continuationSchemaIdOfText(text)
    }),
  'external-id-key': (v) => outcome(() => externalIdKey(live(v.provider) as string, live(v.external_id) as string)),
  'submission-key': (v) =>
    outcome(() => {
      const a = live(v.args) as Any
      return submissionKey({
        applicationId: a.application_id,
        userId: a.user_id,
        sessionId: a.session_id,
        runId: a.run_id,
        provider: a.provider,
        capability: a.capability,
        resume: resumeOf(live(v.resume)),
      })
    }),
  'resume.parse': (v) => outcome(() => ResumeArtifact.parse(live(v.value)).toJSON()),
  'resume.construct': (v) => outcome(() => resumeOf(live(v.args)).toJSON()),
  'resume.equal': (v) => outcome(() => ResumeArtifact.parse(live(v.left)).equals(ResumeArtifact.parse(live(v.right)))),
  'grants.construct': (v) =>
    outcome(() => {
      if (v.container === 'list') throw new Skip('an array is the natural form here')
      return new PrincipalGrantSnapshot({ permissions: live(v.permissions) as string[], version: live(v.version) as 1 }).toJSON()
    }),
  'grants.parse': (v) => outcome(() => PrincipalGrantSnapshot.parse(live(v.value)).toJSON()),
  'grants.equal': (v) =>
    outcome(() => {
      const [left, right] = [v.left, v.right].map((permissions) => new PrincipalGrantSnapshot({ permissions }))
      return left?.equals(right as PrincipalGrantSnapshot)
    }),
  'grants.capture': (v) =>
    outcome(() => {
      const given = live(v.permissions) as string[] | null
      const snapshot = PrincipalGrantSnapshot.capture(given === null ? null : principal(given))
      if (snapshot === null) return null
      const [one, two] = [snapshot.restore(), snapshot.restore()]
      for (const { id } of [one, two]) equal(/^arp_[0-9a-f]{32}$/.test(id), true)
      equal(one.id === two.id || one.id === 'caller', false)
      return { snapshot: snapshot.toJSON(), restored_permissions: [...one.permissions] }
    }),
  'grants.capture-raw': (v) =>
    outcome(() => PrincipalGrantSnapshot.capture(live(v.value) as { permissions: string[] })?.toJSON() ?? null),
  'failure.construct': (v) => outcome(() => new ContinuationFailure(live(v.args) as { code: string }).toJSON()),
  'record.construct': (v, fixture) =>
    outcome(() => {
      const record = recordOf(v.fields, fixture)
      const { type, actionId: action_id, capability } = record.pendingAction
      equal(JSON.stringify(ContinuationRecord.parse(record.toJSON()).toJSON()), JSON.stringify(record.toJSON()))
      return { record: recordForm(record, fixture), pending_action: { type, action_id, capability } }
    }),
  'record.accepted': (v, fixture) => outcome(() => recordOf(v.fields, fixture) instanceof ContinuationRecord),
  'record.text': (v, fixture) =>
    outcome(async () => {
      const { inspect } = await import('node:util')
      const record = recordOf(v.fields, fixture)
      const text = `${inspect(record)} ${String(record)} ${inspect({ record })}`
      return { shown: (v.needles as string[]).filter((needle) => text.includes(needle)) }
    }),
  'scope.construct': (v) =>
    outcome(() => {
      const [applicationId, userId, sessionId, runId] = live(v.parts) as string[]
      const scope = new RunScope({ applicationId, userId, sessionId, runId } as RunScope)
      return [scope.applicationId, scope.userId, scope.sessionId, scope.runId]
    }),
  'provider.construct': (v) =>
    outcome(() => {
      const [applicationId, provider] = [live(v.application_id), live(v.provider)] as string[]
      return new ContinuationProvider({ store: noStore, applicationId: applicationId as string, provider: provider as string })
        .name
    }),
  blank: (v) => outcome(() => isBlank(v.text)),
  'blank.table': async () => {
    const blank: string[] = []
    for (let code = 0; code <= 0x10ffff; code++)
      if ((code < 0xd800 || code > 0xdfff) && isBlank(String.fromCodePoint(code)))
        blank.push(`U+${code.toString(16).toUpperCase().padStart(4, '0')}`)
    return { blank } as unknown as Outcome
  },
  json: (v) => outcome(() => jsonValue(live(v.value))),
  'json.fresh': () =>
    outcome(() => {
      const shared = { n: [1] }
      const source = { a: shared, b: shared }
      const copy = jsonValue(source) as unknown as typeof source
      shared.n.push(2)
      copy.a.n.push(3)
      return { source, copy }
    }),
}
