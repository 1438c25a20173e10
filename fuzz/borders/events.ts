import { canonicalJson, isThreadlogError, type JsonValue, Payload } from '../../src/base/index.ts'
import {
  type Commit,
  decodeEnvelope,
  decodeEvent,
  type EventDraft,
  encodeCommit,
  type LogEvent,
  UNRECOGNISED,
} from '../../src/events/index.ts'
import { type LogBackend, openMemoryLog, type RecordedEvent } from '../../src/log/index.ts'
import {
  decodeState,
  encodeState,
  foldStream,
  harnessStateJson,
  indexProjectors,
  stateHash,
  verifyRecords,
} from '../../src/projections/index.ts'
import { pack, readGolden, unpack } from '../../test/support/golden-events.ts'
import { encodeAt, recordsOf, threadOf } from '../../test/support/legal-threads.ts'
import { accepted, type Border, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { bytesOf, changedBytes } from '../kit/json-text.ts'
import { assertClean, codeOf, nameOf } from '../kit/marker.ts'
import { shorterLists, shorterTexts, simplerValues } from '../kit/minimise.ts'
import type { Random } from '../kit/random.ts'
import { changedValue } from '../kit/values.ts'

/** One record (a character a byte), or a thread in which some event says something else than its writer would. */
export type EventCase =
  | { kind: 'record'; bytes: string }
  | { kind: 'thread'; made: [number, number][]; name: string; edits: { at: number; data: unknown }[]; cut: string | null }

/** Bytes of events as they stand in a log, and threads of events that fit their types and make no sense. */
export const events: Border<EventCase> = {
  name: 'events',
  about: 'bytes of events changed, and threads with events that fit their types and make no sense: decoded, folded, projected',
  limitMs: 5_000,
  renewAfter: 1_000,
  open: async () => {
    const log = await openMemoryLog()
    await log.install(indexProjectors())
    return new EventRig(log)
  },
  generate: (random) => (random.once(2) ? { kind: 'record', bytes: recordBytes(random) } : hostileThread(random)),
  *simpler(input) {
    if (input.kind === 'record') for (const bytes of shorterTexts(input.bytes)) yield { ...input, bytes }
    else {
      for (const edits of shorterLists(input.edits)) yield { ...input, edits }
      for (const [i, edit] of input.edits.entries())
        for (const data of simplerValues(edit.data)) yield { ...input, edits: input.edits.with(i, { ...edit, data }) }
    }
  },
}

let golden: string[] | undefined

function recordBytes(random: Random): string {
  golden ??= readGolden().map(({ bytes }) => Buffer.from(bytes, 'hex').toString('latin1'))
  const bytes = random.pick(golden)
  return random.any(
    () => changedBytes(random, bytes),
    () => `${bytes.slice(0, 5)}${changedBytes(random, bytes.slice(5))}`,
    () => `\x00\x00\x00\x00${String.fromCharCode(random.below(40))}${bytes.slice(5)}`,
    () => bytes.slice(0, random.below(bytes.length)),
    () => random.bytes(random.size(200)),
    () => `${bytes.slice(0, 5)}${random.bytes(1)}${'\xff'.repeat(random.size(12))}${bytes.slice(6)}`,
  )
}

function hostileThread(random: Random): EventCase {
  const made = random.list(2, 25, (): [number, number] => [random.below(9_999), random.below(9_999)])
  const name = `thread_${random.below(1_000_000)}`
  const drafts = threadOf(made, name).commits.flatMap((commit) => commit.drafts)
  const edits = random.list(1, 3, () => {
    const at = random.below(drafts.length)
    return { at, data: changedValue(random, pack((drafts[at] as EventDraft).data)) }
  })
  const last = random.once(3) ? changedBytes(random, random.bytes(40)) : null
  return { kind: 'thread', made, name, edits, cut: last }
}

class EventRig implements Rig<EventCase> {
  readonly #log: LogBackend

  constructor(log: LogBackend) {
    this.#log = log
  }

  async try(input: EventCase): Promise<Outcome> {
    return input.kind === 'record' ? readRecord(bytesOf(input.bytes)) : this.#thread(input)
  }

  async #thread(input: Extract<EventCase, { kind: 'thread' }>): Promise<Outcome> {
    const commits = encoded(input)
    if (typeof commits === 'string') return refused(commits)
    const records = recordsOf(commits).map((record): RecordedEvent => ({ ...record, event: decodeEvent(record.bytes) }))
    if (input.cut !== null) {
      const at = Math.floor(records.length / 2)
      const { event: _, ...rest } = records[at] as RecordedEvent
      records[at] = {
        ...rest,
        bytes: bytesOf(input.cut),
        defect: { code: 'event_undecodable', message: 'The record cannot be read.' },
      }
    }
    const folded = foldStream(records)
    const report = verifyRecords(records[0]?.stream ?? '', records)
    assertClean(JSON.stringify(report.damage?.message ?? ''), 'what verify says')
    if (folded.quarantine) {
      assertClean(folded.quarantine.message, 'why a thread is quarantined')
      promise(report.damage !== undefined, 'silent', 'verify says nothing of a quarantined thread')
    } else checkFold(folded.state)
    if (input.cut === null) await this.#append(commits)
    return folded.quarantine ? refused(folded.quarantine.code) : accepted('folded')
  }

  /** Whatever the events say, the tables can be made of them. */
  async #append(commits: readonly Commit[]): Promise<void> {
    for (const commit of commits) {
      let taken: boolean
      try {
        taken = (await this.#log.events.append(commit)).accepted
      } catch (error) {
        const code = codeOf(error, 'append')
        const cause = (error as Error).cause
        promise(code !== 'projector_failed', 'crash', `a projector fails: ${nameOf(cause)}`, `${(cause as Error)?.stack}`)
        throw error
      }
      // Another case has made the same thread.
      if (!taken) return
    }
  }

  close = () => this.#log.close()
}

/** The commits of the thread with its edits; a code when an edit does not fit its type. */
function encoded({ made, name, edits }: Extract<EventCase, { kind: 'thread' }>): Commit[] | string {
  const { stream, commits } = threadOf(made, name)
  const out: Commit[] = []
  let head = { version: 0, hash: '0'.repeat(64) }
  let at = 0
  for (const commit of commits) {
    const drafts = commit.drafts.map((draft) => {
      const edit = edits.findLast((each) => each.at === at++)
      return edit ? ({ ...draft, data: unpack(edit.data as JsonValue) } as EventDraft) : draft
    })
    try {
      const made = encodeAt(stream, head, { ...commit, drafts })
      out.push(made)
      head = { version: head.version + drafts.length, hash: made.records.at(-1)?.hash ?? '' }
    } catch (error) {
      return codeOf(error, 'encodeCommit', true)
    }
  }
  return out
}

function checkFold(state: ReturnType<typeof foldStream>['state']): void {
  let hash: string
  try {
    hash = stateHash(state)
  } catch (error) {
    codeOf(error, 'stateHash')
    return
  }
  promise(stateHash(decodeState(encodeState(state))) === hash, 'silent', 'a snapshot is another state')
  try {
    harnessStateJson(state)
  } catch (error) {
    codeOf(error, 'harnessState', true)
  }
}

function readRecord(bytes: Uint8Array): Outcome {
  try {
    const envelope = decodeEnvelope(bytes)
    promise(Number.isSafeInteger(envelope.version) && envelope.version >= 0, 'silent', 'a version that is none')
  } catch (error) {
    const code = codeOf(error, 'decodeEnvelope')
    promise(code === 'event_undecodable', 'uncoded', `decodeEnvelope says ${code}`)
  }
  let event: LogEvent
  try {
    event = decodeEvent(bytes)
  } catch (error) {
    const code = codeOf(error, 'decodeEvent')
    promise(code === 'event_undecodable', 'uncoded', `decodeEvent says ${code}`)
    return refused(`${code} ${isThreadlogError(error) ? error.details['reason'] : ''}`)
  }
  checkPayloads(event.data)
  return writtenAgain(event)
}

function checkPayloads(value: unknown): void {
  if (value instanceof Payload) {
    try {
      canonicalJson(value.value)
    } catch (error) {
      const code = codeOf(error, 'a payload')
      promise(code === 'payload_undecodable', 'uncoded', `a payload says ${code}`)
    }
  } else if (typeof value === 'object' && value !== null) for (const item of Object.values(value)) checkPayloads(item)
}

/** What was read can be written, and is read again as the same. */
function writtenAgain(event: LogEvent): Outcome {
  const { stream, version, commit, previous, time, actor, causation, run_id, attempt, type, data } = event
  const meta = { stream, base: version - 1, previous, id: commit.id, time, actor, causation, run_id, attempt }
  if (JSON.stringify(shown(event)).includes(UNRECOGNISED) || version === 0) return accepted('read only')
  let again: LogEvent
  try {
    again = decodeEvent(encodeCommit(meta, [{ type, data } as EventDraft]).records[0]?.bytes ?? new Uint8Array())
  } catch (error) {
    return refused(`written: ${codeOf(error, 'encodeCommit', true)}`)
  }
  const fields = ({ commit: _, hash: __, ...rest }: LogEvent) => JSON.stringify(shown(rest))
  promise(fields(again) === fields(event), 'silent', 'an event is read, written and read as another')
  return accepted('read')
}

/** Fields as JSON, payloads by their bytes. */
const shown = (value: unknown): unknown => {
  if (value instanceof Payload) return Buffer.from(value.bytes).toString('hex')
  if (Array.isArray(value)) return value.map(shown)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shown(item)]))
}
