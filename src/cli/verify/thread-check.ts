import { isJsonObject, MAX_DOCUMENT_DEPTH, parseJson, systemClock, systemIds } from '../../base/index.ts'
import type { EventHash, StreamKey, ThreadKey } from '../../events/index.ts'
import type { LogBackend, Position, RecordedEvent } from '../../log/index.ts'
import {
  type DamageCode,
  type Folded,
  findThread,
  findWait,
  isReservation,
  listWaits,
  type RecordsReport,
  runIdOf,
  stateHash,
  statusOf,
  ThreadStore,
  verifyRecords,
} from '../../projections/index.ts'

/**
 * Faults beside those of the records:
 * - `checkpoint-mismatch`: a published checkpoint names another hash for a version
 * - `state-mismatch`: the live fold, which begins at a snapshot, differs from the fold of everything
 * - `index-mismatch`: the tables of threads and waits say something else than the log
 * - `not-accepted`: the records of a commit do not stand together in the log
 */
export type FaultCode = DamageCode | 'checkpoint-mismatch' | 'state-mismatch' | 'index-mismatch' | 'not-accepted'

export interface Fault {
  readonly code: FaultCode
  readonly version: number | undefined
  readonly position: Position | undefined
  readonly message: string
}

/** What a thread is worth; without a fault it is intact. */
export interface ThreadReport {
  readonly stream: StreamKey
  readonly key: ThreadKey | undefined
  readonly events: number
  readonly head: RecordsReport['head']
  readonly fault: Fault | undefined
}

/** A checkpoint as evidence: this version had this hash when it was published. */
export interface Claim {
  readonly version: number
  readonly hash: EventHash
}

export interface Checking {
  readonly backend: LogBackend
  /** False when the log has no index tables that are up to date. */
  readonly indexed: boolean
  readonly store: ThreadStore
}

/** Prepares checks that write nothing: snapshots are read and not made. */
export async function checking(backend: LogBackend, indexed: boolean): Promise<Checking> {
  const { events, topics, content, tables, owners } = backend
  const close = () => backend.close()
  const install = (projectors: Parameters<LogBackend['install']>[0]) => backend.install(projectors)
  const looking: LogBackend = {
    events,
    topics,
    content,
    tables,
    owners,
    install,
    cache: async () => {},
    close,
    [Symbol.asyncDispose]: close,
  }
  return {
    backend,
    indexed,
    store: await ThreadStore.open({ backend: looking, clock: systemClock, ids: systemIds, kept: { threads: 1, events: 1 } }),
  }
}

/** Hashes that checkpoints quote, by thread. Read before the events, which then are at least as new. */
export async function claimsOf(backend: LogBackend, stream?: StreamKey): Promise<Map<StreamKey, Claim[]>> {
  const claims = new Map<StreamKey, Claim[]>()
  for await (const batch of backend.topics.scan('checkpoints'))
    for (const { key, value } of batch) {
      const claim = stream === undefined || key === stream ? readClaim(value) : undefined
      if (!claim) continue
      const known = claims.get(key)
      if (known) known.push(claim)
      else claims.set(key, [claim])
    }
  return claims
}

function readClaim(value: Uint8Array): Claim | undefined {
  try {
    const json = parseJson(value, { maxDepth: MAX_DOCUMENT_DEPTH })
    const { version, hash } = isJsonObject(json) ? json : {}
    return typeof version === 'number' && typeof hash === 'string' ? { version, hash } : undefined
  } catch {
    return undefined
  }
}

/** How often a thread that moves while it is looked at is looked at again. */
const TRIES = 20

/** Checks one thread: records, checkpoints, live state, index. */
export async function checkThread(c: Checking, stream: StreamKey, claims: readonly Claim[]): Promise<ThreadReport> {
  for (let tries = 1; ; tries++) {
    const records: RecordedEvent[] = []
    for await (const batch of c.backend.events.read(stream)) records.push(...batch)
    const report = verifyRecords(stream, records)
    const fault =
      report.damage ?? claimFault(records, claims) ?? (await liveFault(c, stream, report)) ?? indexFault(c, stream, report)
    const now = await c.backend.events.head(stream)
    if (fault && now && now.version !== report.head.version && tries < TRIES) continue
    const { identity } = report.folded.state
    return { stream, key: identity ?? keyInIndex(c, stream), events: report.events, head: report.head, fault }
  }
}

function keyInIndex({ backend, indexed }: Checking, stream: StreamKey): ThreadKey | undefined {
  const row = indexed ? findThread(backend.tables, stream) : undefined
  return row && row.application !== '' ? { application: row.application, user: row.user, thread: row.thread } : undefined
}

function claimFault(records: readonly RecordedEvent[], claims: readonly Claim[]): Fault | undefined {
  for (const { version, hash } of claims) {
    const record = records[version - 1]
    if (!record) {
      const message = `A checkpoint was published of version ${version}; the log ends before it.`
      return { code: 'missing', version: records.length + 1, position: undefined, message }
    }
    if (record.hash !== hash) {
      const message = 'A checkpoint was published of another event at this version.'
      return { code: 'checkpoint-mismatch', version, position: record.position, message }
    }
  }
  return undefined
}

async function liveFault(
  { store, indexed }: Checking,
  stream: StreamKey,
  { folded, head }: RecordsReport,
): Promise<Fault | undefined> {
  // Snapshots stand beside the index.
  if (!indexed) return undefined
  const live = await store.fold(stream)
  if (live.head.hash === head.hash && stateHash(live.state) === stateHash(folded.state)) return undefined
  const message = 'The state that begins at the snapshot is not the state of all events.'
  return { code: 'state-mismatch', version: head.version, position: undefined, message }
}

function indexFault({ backend, indexed }: Checking, stream: StreamKey, { folded }: RecordsReport): Fault | undefined {
  if (!indexed) return undefined
  const wrong = [...threadFields(backend, stream, folded), ...waitFields(backend, stream, folded)]
  if (wrong.length === 0) return undefined
  const message = `The index differs from the log: ${wrong.slice(0, 5).join(', ')}.`
  return { code: 'index-mismatch', version: folded.head.version, position: undefined, message }
}

function threadFields({ tables }: LogBackend, stream: StreamKey, folded: Folded): string[] {
  const { state, head } = folded
  const row = findThread(tables, stream)
  if (isReservation(state)) return row ? ['a reservation has the row of a thread'] : []
  if (!row) return ['the thread has no row']
  const wanted = {
    application: state.identity?.application,
    user: state.identity?.user,
    thread: state.identity?.thread,
    version: head.version,
    status: statusOf(folded),
    run_id: runIdOf(state),
    open_waits: [...state.waits.values()].filter(({ status }) => status === 'pending').length,
  }
  return Object.entries(wanted).flatMap(([name, value]) => (row[name as keyof typeof row] === value ? [] : [`threads.${name}`]))
}

function waitFields({ tables }: LogBackend, stream: StreamKey, { state }: Folded): string[] {
  const rows = new Map(
    listWaits(tables, { stream, status: 'any', limit: Number.MAX_SAFE_INTEGER }).map((row) => [row.continuation_id, row]),
  )
  const ids = [...state.waits.keys(), ...[...state.closedWaits].map(([id]) => id)]
  const wrong = ids.flatMap((id) => {
    const [row, wait] = [rows.get(id), findWait(state, id)]
    rows.delete(id)
    return row && wait && row.status === wait.status && row.revision === wait.revision ? [] : [`waits of ${id}`]
  })
  return [...wrong, ...[...rows.keys()].map((id) => `waits of ${id}`)]
}
