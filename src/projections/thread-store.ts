import { type Clock, type Ids, type Payload, reject, retryLater } from '../base/index.ts'
import {
  bindContent,
  type Commit,
  type EncodedEvent,
  type EventDraft,
  type EventHash,
  eachPayload,
  encodeCommit,
  INLINE_PAYLOAD,
  type StreamKey,
} from '../events/index.ts'
import { contentLoader, type LogBackend, type RecordedEvent } from '../log/index.ts'
import { asksForRefold, type Folded, foldRecord, foldStream } from './fold.ts'
import type { Folds } from './indexes/index.ts'
import type { DecisionContext } from './proposal.ts'
import { FOLDS_KEPT, type FoldsKept, RecentFolds } from './recent-folds.ts'
import { readSnapshot, SNAPSHOTS, snapshotBytes, writeSnapshot } from './snapshot-table.ts'
import type { ThreadState } from './state.ts'

/** What a decider answers: events and who caused them, or nothing to do. */
export interface Decision {
  readonly drafts: readonly EventDraft[]
  readonly context: DecisionContext
  /** The state behind each draft, if it is known: see {@link Proposal}. It is not folded again then. */
  readonly states?: readonly ThreadState[] | undefined
}

/** A decision and where it stands now. `commit` is undefined when there was nothing to do. */
export interface Committed {
  readonly state: ThreadState
  readonly commit: Commit | undefined
}

export interface ThreadStoreOptions {
  backend: LogBackend
  clock: Clock
  ids: Ids
  /** What the projectors of this log fold with, so that nothing is folded twice. */
  folds?: Pick<Folds, 'at' | 'offer'>
  /** Folded threads kept in memory. */
  kept?: FoldsKept
}

const SNAPSHOT_EVENTS = 64
const TRIES = 10

/**
 * Loads threads (snapshot + tail) and commits decisions on them. Per stream and process one commit is in flight; a decision made
 * on a state the log has moved past is made again on the new one (design §4 "Handling a command").
 */
export class ThreadStore {
  readonly backend: LogBackend
  readonly clock: Clock
  readonly ids: Ids
  readonly #folds: Pick<Folds, 'at' | 'offer'> | undefined
  readonly #cache: RecentFolds<Folded>
  readonly #turns = new Map<StreamKey, Promise<unknown>>()
  /** Size of the last snapshot, and the version at which one was last thought of: serialising a state costs as much as it is long. */
  readonly #snapshots = new Map<StreamKey, { looked: number; bytes: number }>()

  private constructor(options: ThreadStoreOptions) {
    this.backend = options.backend
    this.clock = options.clock
    this.ids = options.ids
    this.#cache = new RecentFolds(options.kept ?? FOLDS_KEPT, ({ head }) => head.version)
    this.#folds = options.folds
  }

  static async open(options: ThreadStoreOptions): Promise<ThreadStore> {
    await options.backend.cache((tx) => tx.run(SNAPSHOTS))
    return new ThreadStore(options)
  }

  /** The fold of a thread up to everything accepted now. */
  async fold(stream: StreamKey): Promise<Folded> {
    const known = this.#cache.get(stream)
    // Content may have been brought back since.
    const cached = known?.quarantine?.code.startsWith('content_') ? undefined : known
    const folded = cached ? await this.#follow(stream, cached) : await this.#fromSnapshot(stream)
    return this.#remember(stream, folded ?? (await this.#refold(stream)))
  }

  /** Adds what the log has behind `folded`; undefined when a repair asks for folding from the first event. */
  async #follow(stream: StreamKey, folded: Folded): Promise<Folded | undefined> {
    const head = await this.backend.events.head(stream)
    if (head?.version === folded.head.version && head.hash === folded.head.hash) return folded
    for await (const records of this.backend.events.read(stream, folded.head.version))
      for (const record of records) {
        if (asksForRefold(folded, record)) return undefined
        folded = foldRecord(folded, record)
      }
    return folded
  }

  /** Snapshot and tail; undefined unless the log has the snapshot's very hash at its version. */
  async #fromSnapshot(stream: StreamKey): Promise<Folded | undefined> {
    const snapshot = readSnapshot(this.backend.tables, stream)
    if (!snapshot) return undefined
    let folded: Folded | undefined
    for await (const records of this.backend.events.read(stream, snapshot.folded.head.version - 1))
      for (const record of records) {
        if (!folded) {
          const { version, hash } = snapshot.folded.head
          if (record.version !== version || record.hash !== hash) return undefined
          folded = snapshot.folded
        } else if (asksForRefold(folded, record)) return undefined
        else folded = foldRecord(folded, record)
      }
    // What stops a fold that began in a cache is confirmed by one that did not.
    if (!folded || folded.quarantine) return undefined
    this.#snapshots.set(stream, { looked: snapshot.folded.head.version, bytes: snapshot.bytes })
    return folded
  }

  /** The state of a thread. @throws ThreadlogError `thread_quarantined` */
  async load(stream: StreamKey): Promise<ThreadState> {
    return usable(await this.fold(stream))
  }

  /** The state as it was at `version`, folded from the first event. */
  async at(stream: StreamKey, version: number): Promise<Folded> {
    const records: RecordedEvent[] = []
    for await (const batch of this.backend.events.read(stream))
      records.push(...batch.filter((record) => record.version <= version))
    return foldStream(records)
  }

  async #refold(stream: StreamKey): Promise<Folded> {
    const records: RecordedEvent[] = []
    for await (const batch of this.backend.events.read(stream)) records.push(...batch)
    return foldStream(records)
  }

  /**
   * Decides and appends until the log accepts a decision made on its own state.
   * @param decide pure; called again after each conflict; undefined = nothing to do
   * @param tries how many conflicts to bear; `contention` after that
   */
  commit(stream: StreamKey, decide: (state: ThreadState) => Decision | undefined, tries = TRIES): Promise<Committed> {
    return this.#inTurn(stream, async () => {
      for (let attempt = 0; attempt < tries; attempt++) {
        const folded = await this.fold(stream)
        const state = usable(folded)
        const decision = decide(state)
        if (!decision || decision.drafts.length === 0) return { state, commit: undefined }
        const large = largePayloads(decision.drafts)
        if (large.length > 0) await this.#keep(large)
        const commit = this.#encode(stream, folded, decision)
        if (large.length > 0) for (const { event } of commit.records) bindContent(event, contentLoader(this.backend.tables))
        this.#folds?.offer(stream, folded, decision.states && { hash: lastHash(commit), states: decision.states })
        const { accepted } = await this.backend.events.append(commit)
        if (accepted) return { state: this.#advance(stream, folded, commit), commit }
      }
      throw contention(stream, tries)
    })
  }

  /** Declares the event at `version` a no-op, which ends a quarantine (R7). */
  repair(stream: StreamKey, version: number, reason: string, actor: DecisionContext['actor']): Promise<void> {
    return this.#inTurn(stream, async () => {
      for (let attempt = 0; attempt < TRIES; attempt++) {
        const folded = await this.fold(stream)
        if (folded.quarantine?.version !== version)
          throw reject('not_quarantined', `The thread is not quarantined at version ${version}.`, { details: { version } })
        const context = { stream, now: this.clock.now(), actor, runId: null, attempt: null }
        const drafts: EventDraft[] = [{ type: 'thread.repaired/1', data: { version, reason } }]
        const { accepted } = await this.backend.events.append(this.#encode(stream, folded, { drafts, context }))
        if (accepted) return
      }
      throw contention(stream, TRIES)
    })
  }

  /** Writes a snapshot when enough has happened since the last one. Losing it costs time, never truth. */
  async snapshot(stream: StreamKey, force = false): Promise<boolean> {
    const folded = this.#cache.get(stream)
    if (!folded || folded.quarantine) return false
    const { version } = folded.head
    const last = this.#snapshots.get(stream)
    if (!force && version - (last?.looked ?? 0) < SNAPSHOT_EVENTS) return false
    const bytes = snapshotBytes(folded.state)
    if (!force && last && bytes.byteLength - last.bytes < last.bytes / 4) {
      this.#snapshots.set(stream, { ...last, looked: version })
      return false
    }
    await this.backend.cache((tx) => writeSnapshot(tx, stream, folded.head, bytes))
    this.#snapshots.set(stream, { looked: version, bytes: bytes.byteLength })
    return true
  }

  /** What is too large for an event stands in the content store before the event that refers to it (R17). */
  async #keep(payloads: readonly Payload[]): Promise<void> {
    for (const payload of payloads) payload.keep(await this.backend.content.put(payload.bytes, 'application/json'))
  }

  #encode(stream: StreamKey, folded: Folded, { drafts, context }: Decision): Commit {
    const { now, actor, runId, attempt, commandId } = context
    const causation = commandId ? { command_id: commandId, source: null } : null
    const id = this.ids.commit(now)
    const { version: base, hash: previous } = folded.head
    return encodeCommit({ stream, base, previous, id, time: now, actor, causation, run_id: runId, attempt }, drafts)
  }

  #advance(stream: StreamKey, folded: Folded, commit: Commit): ThreadState {
    let next = this.#folds?.at(stream, lastHash(commit))
    if (next) return usable(this.#remember(stream, next))
    next = folded
    for (const { version, hash, bytes, event } of commit.records)
      next = foldRecord(next, { stream, version, hash, bytes, event, position: { partition: 0, offset: 0n } })
    return usable(this.#remember(stream, next))
  }

  #remember(stream: StreamKey, folded: Folded): Folded {
    this.#cache.set(stream, folded)
    return folded
  }

  #inTurn<T>(stream: StreamKey, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(stream) ?? Promise.resolve()
    const turn = before.then(work, work)
    const settled = turn.then(
      () => {},
      () => {},
    )
    this.#turns.set(stream, settled)
    void settled.then(() => {
      if (this.#turns.get(stream) === settled) this.#turns.delete(stream)
    })
    return turn
  }
}

/** Values too large for an event, and those that would be taken for a reference. A value that is no JSON is refused when it is encoded. */
function largePayloads(drafts: readonly EventDraft[]): Payload[] {
  const large: Payload[] = []
  for (const { type, data } of drafts)
    eachPayload(type, data, (payload) => {
      if (payload.kept) return
      try {
        if (payload.size > INLINE_PAYLOAD || payload.isReference) large.push(payload)
      } catch {}
    })
  return large
}

const lastHash = (commit: Commit): EventHash => (commit.records.at(-1) as EncodedEvent).hash

const contention = (stream: StreamKey, tries: number) =>
  retryLater('contention', `The thread changed under ${tries} decisions in a row.`, { hint: 'Try again.', details: { stream } })

/** @throws ThreadlogError `thread_quarantined` */
function usable(folded: Folded): ThreadState {
  const q = folded.quarantine
  if (!q) return folded.state
  throw reject('thread_quarantined', `The event at version ${q.version} cannot be folded (${q.code}).`, {
    details: { version: q.version, code: q.code, partition: q.position.partition, offset: String(q.position.offset) },
    hint: 'Look at it with `threadlog replay`; a newer threadlog may read it; `thread.repaired` skips it.',
  })
}
