import type { EventHash, LogEvent, StreamKey } from '../../events/index.ts'
import type { ProjectorTx, RecordedEvent } from '../../log/index.ts'
import { asksForRefold, emptyFold, type Folded, foldRecord, foldStream, repairedVersions } from '../fold.ts'
import { landed } from '../proposal.ts'
import { FOLDS_KEPT, type FoldsKept, RecentFolds } from '../recent-folds.ts'
import { readSnapshot } from '../snapshot-table.ts'
import type { ThreadState } from '../state.ts'

/** One record of a thread, and the fold before and after it. */
export interface Step {
  readonly record: RecordedEvent
  readonly before: Folded
  readonly after: Folded
  /** The event, if the fold took it: absent for what is unreadable, repaired away, or behind a quarantine. */
  readonly event: LogEvent | undefined
}

/** What one transaction does to one thread. */
export interface ThreadSteps {
  readonly stream: StreamKey
  /** In version order. After a repair it begins at the repaired version: nothing behind that has been projected before. */
  readonly steps: readonly Step[]
  readonly after: Folded
  /** The thread was folded anew because of a repair: rows made from it are to be written as a whole. */
  readonly refolded: boolean
}

/** Where a thread stands: what is kept of it between transactions. */
interface Entry {
  readonly before: Folded
  readonly after: Folded
  /** What a decision on `after` leads to. */
  readonly ahead?: Ahead | undefined
}

/** What the last list of events did to a thread: kept while its projectors ask, for it holds a state for each event. */
interface Walked {
  readonly records: readonly RecordedEvent[]
  readonly result: ThreadSteps
}

/** The events of a decision, by the hash of the last one, and the state behind each, as it was proposed. */
export interface Ahead {
  readonly hash: EventHash
  readonly states: readonly ThreadState[]
}

/**
 * The folds that projectors of one log share: each event is folded once, whoever asks first. An entry is taken only if its head is
 * the very event the next one names as its previous, so what a rolled back transaction left behind does no harm.
 */
export class Folds {
  readonly #entries: RecentFolds<Entry>
  #last: { readonly events: readonly RecordedEvent[]; readonly threads: ReadonlyMap<StreamKey, Walked> } | undefined

  constructor(kept: FoldsKept = FOLDS_KEPT) {
    this.#entries = new RecentFolds(kept, ({ after }) => after.head.version)
  }

  /** The fold of a stream whose newest event has this hash, if a projector has just made it. */
  at(stream: StreamKey, hash: EventHash): Folded | undefined {
    const after = this.#entries.get(stream)?.after
    return after?.head.hash === hash ? after : undefined
  }

  /**
   * A fold that somebody else has made: what comes next goes on from it, so a thread seen first is not read again.
   * @param ahead what was decided on it: those events are not folded a second time
   */
  offer(stream: StreamKey, folded: Folded, ahead?: Ahead): void {
    const known = this.#entries.get(stream)
    const fits = known?.after.head.hash === folded.head.hash
    if (fits && !ahead) return
    this.#entries.set(stream, { ...(fits ? known : { before: folded, after: folded }), ahead })
  }

  /** The steps of each thread in `events`. Projectors are given the same list one after the other. */
  steps(tx: ProjectorTx, events: readonly RecordedEvent[]): readonly ThreadSteps[] {
    if (this.#last?.events !== events) {
      const threads = new Map<StreamKey, Walked>()
      for (const [stream, records] of groupByStream(events)) threads.set(stream, this.#walked(tx, stream, records))
      this.#last = { events, threads }
    }
    return Array.from(this.#last.threads.values(), ({ result }) => result)
  }

  #walked(tx: ProjectorTx, stream: StreamKey, records: readonly RecordedEvent[]): Walked {
    const last = this.#last?.threads.get(stream)
    if (last && isSame(last.records, records)) return last
    return { records, result: this.#thread(tx, stream, records) }
  }

  #thread(tx: ProjectorTx, stream: StreamKey, records: readonly RecordedEvent[]): ThreadSteps {
    const known = this.#entries.get(stream)
    const first = records[0] as RecordedEvent
    const fits = (folded: Folded | undefined) => folded !== undefined && continues(folded, first)
    // Behind a rolled back transaction its events come once more, on the fold before them.
    const before = [known?.after, known?.before].find(fits) ?? load(tx, first)
    const states = before === known?.after && known.ahead && isAhead(known.ahead, records) ? known.ahead.states : undefined
    const result = states ? decided(stream, records, before, states) : walk(tx, stream, records, before)
    this.#entries.set(stream, { before, after: result.after })
    return result
  }
}

function groupByStream(events: readonly RecordedEvent[]): Map<StreamKey, RecordedEvent[]> {
  const groups = new Map<StreamKey, RecordedEvent[]>()
  for (const record of events) {
    const group = groups.get(record.stream)
    if (group) group.push(record)
    else groups.set(record.stream, [record])
  }
  return groups
}

/** Hashes chain, so the same ends mean the same records. */
function isSame(a: readonly RecordedEvent[], b: readonly RecordedEvent[]): boolean {
  const [first, last] = [a[0] as RecordedEvent, a[a.length - 1] as RecordedEvent]
  return a.length === b.length && isRecord(first, b[0] as RecordedEvent) && isRecord(last, b[b.length - 1] as RecordedEvent)
}

const isRecord = (a: RecordedEvent, b: RecordedEvent): boolean =>
  a.version === b.version && a.hash === b.hash && a.position.offset === b.position.offset

const isAhead = ({ hash, states }: Ahead, records: readonly RecordedEvent[]): boolean =>
  states.length === records.length && records.at(-1)?.hash === hash

/** The steps of events that were folded when they were decided. */
function decided(
  stream: StreamKey,
  records: readonly RecordedEvent[],
  before: Folded,
  states: readonly ThreadState[],
): ThreadSteps {
  let folded = before
  const steps = records.map((record, i): Step => {
    const { version, hash } = record
    const proposed = states[i] as ThreadState
    const state = i === records.length - 1 ? landed(proposed, hash) : { ...proposed, hash }
    const step = { record, before: folded, after: { ...before, state, head: { version, hash } }, event: record.event }
    folded = step.after
    return step
  })
  return { stream, steps, after: folded, refolded: false }
}

/** A record without an event does not say what it follows; then the log is read. */
const continues = ({ head }: Folded, record: RecordedEvent): boolean =>
  head.version === record.version - 1 && head.hash === record.event?.previous

/** The fold up to, not including, `record`: from the thread's snapshot and what follows it, else from its first event. */
function load(tx: ProjectorTx, record: RecordedEvent): Folded {
  const { stream, version } = record
  if (version === 1) return emptyFold
  return fromSnapshot(tx, stream, version) ?? foldStream(upTo(tx, stream, version - 1))
}

const upTo = (tx: ProjectorTx, stream: StreamKey, version: number, after = 0): RecordedEvent[] =>
  tx.read(stream, after).filter((record) => record.version <= version)

function fromSnapshot(tx: ProjectorTx, stream: StreamKey, version: number): Folded | undefined {
  const snapshot = readSnapshot(tx, stream)?.folded
  if (!snapshot || snapshot.head.version >= version) return undefined
  const [at, ...tail] = upTo(tx, stream, version - 1, snapshot.head.version - 1)
  if (!at || at.version !== snapshot.head.version || at.hash !== snapshot.head.hash) return undefined
  let folded = snapshot
  for (const record of tail) {
    if (asksForRefold(folded, record)) return undefined
    folded = foldRecord(folded, record)
  }
  return folded.quarantine ? undefined : folded
}

function walk(tx: ProjectorTx, stream: StreamKey, records: readonly RecordedEvent[], before: Folded): ThreadSteps {
  const steps: Step[] = []
  let folded = before
  let refolded = false
  for (const record of records) {
    if (asksForRefold(folded, record)) {
      const from = folded.quarantine?.version ?? record.version
      for (const step of refold(upTo(tx, stream, record.version))) {
        folded = step.after
        if (step.record.version >= from) steps.push(step)
      }
      refolded = true
    } else {
      const step = stepOf(folded, record)
      folded = step.after
      steps.push(step)
    }
  }
  return { stream, steps, after: folded, refolded }
}

function* refold(records: readonly RecordedEvent[]): Iterable<Step> {
  let folded: Folded = { ...emptyFold, skipped: repairedVersions(records) }
  for (const record of records) {
    const step = stepOf(folded, record)
    folded = step.after
    yield step
  }
}

function stepOf(before: Folded, record: RecordedEvent): Step {
  const after = foldRecord(before, record)
  return { record, before, after, event: after.quarantine || after.skipped.has(record.version) ? undefined : record.event }
}
