import type { EventType } from '../../events/index.ts'
import type { SqlValue } from '../../log/index.ts'
import { activeRun, awaitedWait, unacknowledgedWait } from '../evolve-foreign.ts'
import type { Folded } from '../fold.ts'
import { type ForeignSession, type ThreadState, threadStatus } from '../state.ts'
import type { Step, ThreadSteps } from './steps.ts'

/** A row of `threads`. Times are epoch milliseconds. */
export interface ThreadRow {
  /** Counts up in the order threads were opened in the log. */
  readonly id: number
  readonly stream: string
  /** `''` while the opening event cannot be read; so for `user`, `thread` and `kind`. */
  readonly application: string
  readonly user: string
  readonly thread: string
  readonly kind: 'harness' | 'foreign' | ''
  /** Number of accepted events. */
  readonly version: number
  readonly status: 'idle' | 'requested' | 'running' | 'waiting' | 'resolved' | 'quarantined'
  /** The running or suspended run; null while there is none. So the next six. */
  readonly run_id: string | null
  readonly invocation_id: string | null
  readonly agent: string | null
  readonly revision: string | null
  readonly owner_id: string | null
  readonly owner_kind: 'library' | 'engine' | 'unrecognised' | null
  readonly attempt: number | null
  /** Pending waits. */
  readonly open_waits: number
  /** The agent revision that last refused to resume this suspension (R11). */
  readonly blocked_revision: string | null
  /** Agent of the oldest run asked for and not begun. */
  readonly requested_agent: string | null
  /** How the last ended invocation ended. */
  readonly last_end: 'completed' | 'failed' | 'cancelled' | null
  /** Version of the event that stopped the fold. */
  readonly quarantined_at: number | null
  readonly opened_at: number
  readonly updated_at: number
}

/**
 * The columns. Those a thread is opened with never change and carry the look-up indexes; each sweep has a partial index that holds only
 * the threads it looks for, so a waiting thread of threadlog itself stands in none of them.
 */
export const THREADS = `
CREATE TABLE IF NOT EXISTS threads(
  id INTEGER PRIMARY KEY,
  stream TEXT NOT NULL UNIQUE,
  application TEXT NOT NULL,
  user TEXT NOT NULL,
  thread TEXT NOT NULL,
  kind TEXT NOT NULL,
  version INTEGER NOT NULL,
  status TEXT NOT NULL,
  run_id TEXT,
  invocation_id TEXT,
  agent TEXT,
  revision TEXT,
  owner_id TEXT,
  owner_kind TEXT,
  attempt INTEGER,
  open_waits INTEGER NOT NULL,
  blocked_revision TEXT,
  requested_agent TEXT,
  last_end TEXT,
  quarantined_at INTEGER,
  opened_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS threads_scope ON threads(application, user, id);
CREATE INDEX IF NOT EXISTS threads_requested ON threads(requested_agent, id) WHERE requested_agent IS NOT NULL;
CREATE INDEX IF NOT EXISTS threads_resolved ON threads(agent, id) WHERE status = 'resolved';
CREATE INDEX IF NOT EXISTS threads_running ON threads(id) WHERE status = 'running';
CREATE INDEX IF NOT EXISTS threads_foreign ON threads(application, id) WHERE kind = 'foreign' AND status IN ('waiting', 'resolved');
`

const opening = ['stream', 'application', 'user', 'thread', 'kind', 'opened_at'] as const
const moving = [
  ...(['version', 'status', 'run_id', 'invocation_id', 'agent', 'revision', 'owner_id', 'owner_kind', 'attempt'] as const),
  ...(['open_waits', 'blocked_revision', 'requested_agent', 'last_end', 'quarantined_at', 'updated_at'] as const),
]

export const INSERT_THREAD = `INSERT INTO threads(${[...opening, ...moving].join(', ')})
VALUES (${[...opening, ...moving].map(() => '?').join(', ')})`

/** Moves on the row of an opened thread, never back; what the events do not say is null, and stays. The last two parameters are thread and version. */
export const MOVE_THREAD = `UPDATE threads SET ${moving
  .map((name) => (name === 'last_end' || name === 'updated_at' ? `${name} = ifnull(?, ${name})` : `${name} = ?`))
  .join(', ')} WHERE stream = ? AND version < ? AND application <> ''`

/** Its last parameter is the id. A repair of the first event opens the thread late, so the opening columns have a statement too. */
export const UPDATE_THREAD = `UPDATE threads SET ${moving.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`
export const REOPEN_THREAD = `UPDATE threads SET ${opening.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`

type Opening = Pick<ThreadRow, (typeof opening)[number]>
type Moving = { readonly [Name in (typeof moving)[number]]: ThreadRow[Name] | null }

export const openingValues = (row: Opening): SqlValue[] => opening.map((name) => row[name])
export const movingValues = (row: Moving): SqlValue[] => moving.map((name) => row[name])

/** What a thread's first events say once. */
export function openingOf({ stream, after, steps }: ThreadSteps): Opening {
  const identity = after.state.identity
  return {
    stream,
    application: identity?.application ?? '',
    user: identity?.user ?? '',
    thread: identity?.thread ?? '',
    kind: identity?.kind ?? '',
    opened_at: identity?.openedAt ?? timeOf(steps) ?? 0,
  }
}

/** What the events of one transaction make of a row; null for a last end and a time that they do not say. */
export function movingOf({ after, steps }: ThreadSteps): Moving {
  const { state, quarantine } = after
  const run = state.run
  return {
    version: after.head.version,
    status: statusOf(after),
    run_id: runIdOf(state),
    invocation_id: run?.invocationId ?? null,
    agent: run?.agent.name ?? null,
    revision: run?.agent.revision ?? null,
    owner_id: run?.owner.id ?? null,
    owner_kind: run?.owner.kind ?? null,
    attempt: run?.attempt ?? null,
    open_waits: pendingWaits(state).length,
    blocked_revision: run?.blocked?.revision ?? null,
    requested_agent: state.requested[0]?.agent ?? null,
    last_end: lastEnd(steps) ?? null,
    quarantined_at: quarantine?.version ?? null,
    updated_at: timeOf(steps) ?? null,
  }
}

/** What the run of a thread is called that has not ended; null: there is none. */
export const runIdOf = ({ run, foreign }: ThreadState): string | null =>
  run?.runId ?? (foreign && activeRun(foreign)?.runId) ?? null

/** What the row of a thread calls its status. */
export const statusOf = ({ state, quarantine }: Folded): ThreadRow['status'] =>
  quarantine ? 'quarantined' : state.foreign ? foreignStatus(state, state.foreign) : threadStatus(state)

/**
 * A session of a foreign host waits while its run waits for a continuation; it is resolved when only its host has still to take the outcome,
 * or to say that it has. */
function foreignStatus(state: ThreadState, foreign: ForeignSession): ThreadRow['status'] {
  const run = activeRun(foreign)
  if (run?.status !== 'waiting') return run ? (unacknowledgedWait(state) ? 'resolved' : 'running') : 'idle'
  return awaitedWait(state)?.status === 'pending' || run.pendingAction?.type !== 'external_continuation' ? 'waiting' : 'resolved'
}

/** Ids of the waits that are still to be answered, oldest first. */
export const pendingWaits = (state: ThreadState): string[] =>
  [...state.waits.values()].filter((wait) => wait.status === 'pending').map((wait) => wait.id)

const timeOf = (steps: readonly Step[]): number | undefined => steps.findLast((step) => step.record.event)?.record.event?.time

/** How an invocation ended, by the event that ended it. */
export const ENDS: Partial<Record<EventType, NonNullable<ThreadRow['last_end']>>> = {
  'run.completed/1': 'completed',
  'run.failed/1': 'failed',
  'run.cancelled/1': 'cancelled',
}

/** A refused resume ends a run and not its invocation. */
function lastEnd(steps: readonly Step[]): ThreadRow['last_end'] | undefined {
  const last = steps.findLast(({ before, after, event }) => event && after.state.invocations.size > before.state.invocations.size)
  return last?.event && ENDS[last.event.type]
}
