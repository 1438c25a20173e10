import { isThreadlogError } from '../../base/index.ts'
import { type Commit, encodeCommit, type StreamKey } from '../../events/index.ts'
import type { EventLog, RecordedEvent } from '../../log/index.ts'
import { type Folded, foldStream } from '../../projections/index.ts'
import { type Command, decide, type Negative } from './domain.ts'

/** What the caller of a command on a real log is told, or what a commit sent past every writer was answered. */
export interface PortAnswer {
  readonly stream: StreamKey
  readonly command: Command
  readonly held: number
  readonly outcome: 'accepted' | Negative
  readonly commitId: string | undefined
  /** Version of the stream in the log when the command came. */
  readonly came: number
}

interface PortSlot {
  readonly command: Command
  readonly came: number
  readonly repeated: boolean
  /** Sent with an unknown fate: to be sent again, as it is. */
  commit: Commit | undefined
}

/** Records of a stream as this log shows them, in order; those behind `records` are added to it. */
export async function recordsOf(log: EventLog, stream: StreamKey, records: RecordedEvent[] = []): Promise<RecordedEvent[]> {
  for await (const page of log.read(stream, records.length)) records.push(...page)
  return records
}

/** A commit on the head of a fold, made the same way everywhere. */
export function portCommit(
  stream: StreamKey,
  folded: Folded,
  n: number,
  commandId: string,
  drafts: Parameters<typeof encodeCommit>[1],
) {
  const { version: base, hash: previous } = folded.head
  const id = n.toString(16).padStart(32, '0')
  const actor = { kind: 'library', id: 'model', source: 'model' }
  return encodeCommit({ stream, base, previous, id, time: n, actor, causation: { command_id: commandId, source: null } }, drafts)
}

/** A process that writes to a real log, through whatever stands between. */
export class PortWriter {
  readonly #name: string
  readonly #log: EventLog
  readonly #nextId: () => number
  readonly #answered: (answer: PortAnswer) => Promise<void>
  readonly #refused: (commit: Commit) => void
  readonly #slots = new Map<StreamKey, PortSlot>()
  /** What it has read, by stream; only the tail is read again. */
  readonly #records = new Map<StreamKey, RecordedEvent[]>()
  readonly #held = new Map<StreamKey, number>()

  constructor(parts: {
    name: string
    log: EventLog
    nextId: () => number
    answered: (answer: PortAnswer) => Promise<void>
    refused: (commit: Commit) => void
  }) {
    this.#name = parts.name
    this.#log = parts.log
    this.#nextId = parts.nextId
    this.#answered = parts.answered
    this.#refused = parts.refused
  }

  isFree(stream: StreamKey): boolean {
    return !this.#slots.has(stream)
  }

  /** True if it has taken an attempt of the stream's run. */
  holds(stream: StreamKey): boolean {
    return this.#held.has(stream)
  }

  /** Commands without an answer. */
  get waiting(): readonly { readonly stream: StreamKey; readonly command: Command; readonly came: number }[] {
    return [...this.#slots].map(([stream, { command, came }]) => ({ stream, command, came }))
  }

  take(stream: StreamKey, command: Command, came: number, repeated = false): void {
    this.#slots.set(stream, { command, came, repeated, commit: undefined })
  }

  /** Goes on with a command until it has its answer, or until nobody knows the fate of its commit. */
  async go(stream: StreamKey): Promise<void> {
    const slot = this.#slots.get(stream)
    if (!slot) return
    for (;;) {
      if (!slot.commit) {
        const answer = await this.#decide(stream, slot)
        if (answer) return this.#answer(stream, answer)
      }
      const commit = slot.commit as unknown as Commit
      try {
        const { accepted } = await this.#log.append(commit)
        slot.commit = undefined
        if (accepted) return this.#accepted(stream, slot, commit)
        this.#refused(commit)
      } catch (error) {
        if (isThreadlogError(error, 'append_ambiguous')) return
        throw error
      }
    }
  }

  /** Decides on what the log shows; a negative answer only after the barrier. Undefined if there is now a commit to send. */
  async #decide(stream: StreamKey, slot: PortSlot): Promise<PortAnswer | undefined> {
    const { command, came, repeated } = slot
    const held = this.#held.get(stream) ?? 0
    for (let behindBarrier = false; ; behindBarrier = true) {
      const records = await recordsOf(this.#log, stream, this.#records.get(stream))
      this.#records.set(stream, records)
      const done = repeated ? records.find(({ event }) => event?.causation?.command_id === command.id) : undefined
      if (done) return { stream, command, held, came, outcome: 'accepted', commitId: done.event?.commit.id }
      const folded = foldStream(records)
      const proposal = decide(folded, command, this.#name, held)
      if ('drafts' in proposal) {
        slot.commit = portCommit(stream, folded, this.#nextId(), command.id, proposal.drafts)
        return undefined
      }
      if (behindBarrier) return { stream, command, held, came, outcome: proposal.negative, commitId: undefined }
      await this.#log.barrier(this.#log.partitionOf(stream))
    }
  }

  async #accepted(stream: StreamKey, { command, came }: PortSlot, commit: Commit): Promise<void> {
    const started = commit.records.find(({ event }) => event.type === 'run.started/1' || event.type === 'run.recovered/1')?.event
    if (started) this.#held.set(stream, (started.data as { attempt: number }).attempt)
    await this.#answer(stream, { stream, command, held: 0, came, outcome: 'accepted', commitId: commit.id })
  }

  #answer(stream: StreamKey, answer: PortAnswer): Promise<void> {
    this.#slots.delete(stream)
    return this.#answered(answer)
  }
}
