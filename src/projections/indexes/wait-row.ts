import { canonicalJson } from '../../base/index.ts'
import type { SqlValue } from '../../log/index.ts'
import type { ThreadIdentity, Wait, WaitStatus } from '../state.ts'

/** A row of `waits`. Times are epoch milliseconds. */
export interface WaitRow {
  /** Counts up in the order of the log. */
  readonly id: number
  readonly continuation_id: string
  readonly stream: string
  readonly application: string
  readonly user: string
  readonly thread: string
  readonly provider: string
  readonly capability: string
  readonly schema_id: string
  readonly external_id: string
  readonly external_id_key: string
  readonly kind: 'external' | 'approval' | 'question' | 'unrecognised'
  readonly tool_name: string
  /** The call of the response, `model_call_id`. */
  readonly call_id: string
  readonly status: WaitStatus
  /** 1 once armed, else 0. */
  readonly ready: 0 | 1
  readonly revision: number
  readonly run_id: string
  readonly invocation_id: string
  readonly proposal_digest: string
  readonly deadline: number | null
  /** Where a foreign host goes on, and what its run may do, as JSON. Null for waits of threadlog's own runs. */
  readonly resume: string | null
  readonly grants: string | null
  /** Id and submitted digest of the result that answered it. */
  readonly result_id: string | null
  readonly digest: string | null
  readonly created_at: number
  readonly updated_at: number
}

/**
 * The columns. Only pending waits stand in the indexes that lists and sweeps use; a thread's waits are few, so theirs holds all of them and
 * is not written again when one is answered. External ids are kept unique by reservations, not
 * here: a projector must take any event, so of two waits with one external id the look-up finds the older. Rows that are equal to an
 * index stand in it in the order of `id`, in which lists are read.
 */
export const WAITS = `
CREATE TABLE IF NOT EXISTS waits(
  id INTEGER PRIMARY KEY,
  continuation_id TEXT NOT NULL UNIQUE,
  stream TEXT NOT NULL,
  application TEXT NOT NULL,
  user TEXT NOT NULL,
  thread TEXT NOT NULL,
  provider TEXT NOT NULL,
  capability TEXT NOT NULL,
  schema_id TEXT NOT NULL,
  external_id TEXT NOT NULL,
  external_id_key TEXT NOT NULL,
  kind TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  call_id TEXT NOT NULL,
  status TEXT NOT NULL,
  ready INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  invocation_id TEXT NOT NULL,
  proposal_digest TEXT NOT NULL,
  deadline INTEGER,
  resume TEXT,
  grants TEXT,
  result_id TEXT,
  digest TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS waits_external ON waits(application, provider, external_id_key, id);
CREATE INDEX IF NOT EXISTS waits_pending ON waits(application, provider, kind, created_at) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS waits_provider ON waits(application, provider, continuation_id) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS waits_thread ON waits(stream);
CREATE INDEX IF NOT EXISTS waits_due ON waits(application, deadline, id) WHERE status = 'pending' AND deadline IS NOT NULL;
`

const created = [
  ...(['continuation_id', 'stream', 'application', 'user', 'thread', 'provider', 'capability', 'schema_id'] as const),
  ...(['external_id', 'external_id_key', 'kind', 'tool_name', 'call_id', 'run_id', 'invocation_id'] as const),
  ...(['proposal_digest', 'resume', 'grants', 'created_at'] as const),
]
const moving = ['status', 'ready', 'revision', 'deadline', 'result_id', 'digest', 'updated_at'] as const
const columns = [...created, ...moving]

/** Moves on a wait that is there: most often the only columns to write. The last three parameters are its id, its thread and its revision. */
export const UPDATE_WAIT = `UPDATE waits SET ${moving.map((name) => `${name} = ?`).join(', ')}
WHERE continuation_id = ? AND stream = ? AND revision <= ?`

/** Inserts a wait, or moves on the one with its id; never that of another thread, and never back. */
export const UPSERT_WAIT = `INSERT INTO waits(${columns.join(', ')})
VALUES (${columns.map(() => '?').join(', ')})
ON CONFLICT(continuation_id) DO UPDATE SET ${moving.map((name) => `${name} = excluded.${name}`).join(', ')}
WHERE stream = excluded.stream AND revision <= excluded.revision`

export const waitValues = (row: Omit<WaitRow, 'id'>): SqlValue[] => columns.map((name) => row[name])
export const waitUpdate = (stream: string, wait: Wait): SqlValue[] => {
  const row = waitMoving(wait)
  return [...moving.map((name) => row[name]), wait.id, stream, wait.revision]
}

const waitMoving = (wait: Wait): Pick<WaitRow, (typeof moving)[number]> => ({
  status: wait.status,
  ready: wait.ready ? 1 : 0,
  revision: wait.revision,
  deadline: wait.deadline,
  result_id: wait.outcome?.resultId ?? null,
  digest: wait.outcome?.digest ?? null,
  updated_at: wait.updatedAt,
})

/** The row of a wait. */
export function waitRow(identity: ThreadIdentity, wait: Wait): Omit<WaitRow, 'id'> {
  const { application, user, thread, stream } = identity
  return {
    continuation_id: wait.id,
    stream,
    application,
    user,
    thread,
    provider: wait.provider,
    capability: wait.capability,
    schema_id: wait.schemaId,
    external_id: wait.externalId,
    external_id_key: wait.externalIdKey,
    kind: wait.item.kind,
    tool_name: wait.item.tool_name,
    call_id: wait.item.model_call_id,
    run_id: wait.runId,
    invocation_id: wait.invocationId,
    proposal_digest: wait.item.proposal_digest,
    resume: wait.resume && canonicalJson(wait.resume.value),
    grants: wait.grants && canonicalJson(wait.grants.value),
    created_at: wait.createdAt,
    ...waitMoving(wait),
  }
}
