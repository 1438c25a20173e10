import { attemptOf, type Command, decide } from './domain.ts'
import type { Batch, Network, Sender } from './network.ts'
import type { Partition } from './partition.ts'
import type { FateQuestion, ProtocolRules } from './rules.ts'
import type { Answer, Slot, WriterEvents } from './slot.ts'
import type { Send } from './steps.ts'
import { Tail } from './tail.ts'
import type { ModelCommit, ModelRecord } from './wire.ts'

/** Conflicts that a command bears; commands of the current attempt bear any number. */
const TRIES = 2

/** A process that writes: load from the lagging tail, decide, send, and learn the fate from the log. */
export class Writer implements Sender {
  readonly number: number
  readonly tail: Tail
  readonly #partition: Partition
  readonly #rules: ProtocolRules
  readonly #events: WriterEvents
  readonly #slots = new Map<number, Slot>()
  /** Attempts it has taken, by stream. */
  readonly #held = new Map<number, number>()
  /** The batch whose answer it waits for. */
  #awaited: Batch | undefined
  /** True after a failed send: what the idempotent producer's lost sequence numbers lead to (H1). */
  #confused = false

  constructor(number: number, partition: Partition, rules: ProtocolRules, events: WriterEvents) {
    this.number = number
    this.#partition = partition
    this.#rules = rules
    this.#events = events
    this.tail = new Tail(partition, rules)
  }

  isFree(stream: number): boolean {
    return !this.#slots.has(stream)
  }

  /** True if it has taken an attempt of the stream's run. */
  holds(stream: number): boolean {
    return this.#held.has(stream)
  }

  get busy(): number {
    return this.#slots.size
  }

  /** True if a flush would send, or give up waiting. */
  get hasToSend(): boolean {
    return this.#awaited !== undefined || this.#staged().length > 0
  }

  /** Some commit it has under way. */
  underWay(pick: number): ModelCommit | undefined {
    const commits = [...this.#slots.values()].flatMap(({ commit }) => commit ?? [])
    return commits[pick % commits.length]
  }

  command(stream: number, command: Command, came = this.#partition.records.length, repeated = false): void {
    const slot: Slot = {
      command,
      came,
      repeated,
      state: 'waiting',
      held: 0,
      commit: undefined,
      acknowledged: undefined,
      conflicts: 0,
      barrier: undefined,
    }
    this.#slots.set(stream, slot)
    this.#decide(stream, slot)
  }

  read(count: number): void {
    this.tail.read(count)
    for (const [stream, slot] of [...this.#slots]) {
      if (slot.commit) this.#learn(stream, slot, slot.commit)
      else if (slot.barrier !== undefined && this.tail.hasRead(slot.barrier)) this.#decide(stream, slot)
    }
  }

  /** Sends what is to be sent. Without an answer to the last send it gives that one up first: it may have been written or not. */
  flush(network: Network, send: Send, cut: number): boolean {
    if (this.#awaited) this.failed(this.#awaited)
    const slots = this.#staged()
    if (slots.length === 0) return false
    const batch = { writer: this, commits: slots.map((slot) => slot.commit as ModelCommit) }
    this.#awaited = batch
    for (const slot of slots) slot.state = 'sent'
    if (this.#confused && this.#rules.acknowledgesUnwritten) {
      this.#confused = false
      this.acknowledged(batch, this.#partition.end)
    } else network.send(batch, send, cut)
    return true
  }

  /** The log says that the batch is written, its first record at `offset`. */
  acknowledged(batch: Batch, offset: number): void {
    if (this.#awaited !== batch) return
    this.#awaited = undefined
    for (const commit of batch.commits) {
      const slot = this.#slots.get(commit.stream)
      const end = offset + commit.size
      if (slot?.commit === commit) {
        slot.state = 'acknowledged'
        slot.acknowledged = { offset, end }
        this.#learn(commit.stream, slot, commit)
      }
      offset = end
    }
  }

  /** Nobody knows whether the batch is written. The same commits are sent again, perhaps with others that have come since. */
  failed(batch: Batch): void {
    if (this.#awaited !== batch) return
    this.#awaited = undefined
    this.#confused = true
    this.#events.ambiguous()
    for (const commit of batch.commits) {
      const slot = this.#slots.get(commit.stream)
      if (slot?.commit !== commit) continue
      slot.state = 'staged'
      if (this.#rules.afterFailure === 'decide-again') this.#decide(commit.stream, slot)
    }
  }

  /**
   * The process dies and starts again. Its callers, who have no answer, ask again; the work of its attempts dies with it. What it has sent may
   * still arrive.
   */
  kill(): void {
    const lost = [...this.#slots]
    this.#slots.clear()
    this.#held.clear()
    this.#awaited = undefined
    this.#confused = false
    this.tail.restart()
    for (const [stream, { command, came }] of lost) if (command.kind !== 'work') this.command(stream, command, came, true)
  }

  #staged(): Slot[] {
    return [...this.#slots.values()].filter((slot) => slot.state === 'staged')
  }

  #decide(stream: number, slot: Slot): void {
    const done = slot.repeated && this.#rules.knowsCommands ? this.#appliedBy(stream, slot.command) : undefined
    if (done) this.#answer(stream, slot, 'accepted', done.commit.id)
    else this.#propose(stream, slot)
  }

  #propose(stream: number, slot: Slot): void {
    const { command } = slot
    slot.held = this.#held.get(stream) ?? 0
    const { folded } = this.tail.view(stream)
    const proposal = decide(folded, command, `w${this.number}`, slot.held)
    if ('negative' in proposal) {
      slot.commit = undefined
      if (this.#rules.barrier && slot.barrier === undefined) slot.barrier = this.#partition.end
      if (slot.barrier === undefined || this.tail.hasRead(slot.barrier)) this.#answer(stream, slot, proposal.negative)
      else slot.state = 'waiting'
      return
    }
    slot.commit = this.#partition.wire.commit({ stream, on: folded.head, commandId: command.id, drafts: proposal.drafts })
    slot.acknowledged = undefined
    slot.state = 'staged'
  }

  #appliedBy(stream: number, command: Command): ModelRecord | undefined {
    return this.tail.view(stream).records.find(({ recorded }) => recorded.event?.causation?.command_id === command.id)
  }

  #learn(stream: number, slot: Slot, commit: ModelCommit): void {
    const fate = this.#rules.fate(this.#question(slot, commit))
    if (fate === 'accepted') this.#accepted(stream, slot, commit)
    else if (fate === 'refused') this.#refused(stream, slot, commit)
    else this.#undecided(slot)
  }

  #question({ acknowledged }: Slot, commit: ModelCommit): FateQuestion {
    const { tail } = this
    return {
      commit,
      standing: tail.standing(commit.stream, commit.base + 1),
      acknowledged,
      isAccepted: (offset) => tail.view(commit.stream).records.some((record) => record.offset === offset),
      hasRead: (end) => tail.hasRead(end),
      isVoid: () => tail.voids.some((found) => found.commitId === commit.id),
    }
  }

  #accepted(stream: number, slot: Slot, commit: ModelCommit): void {
    const { kind } = slot.command
    if (kind === 'open' || kind === 'take') this.#held.set(stream, attemptAfter(this.tail, stream, commit))
    this.#answer(stream, slot, 'accepted', commit.id)
  }

  #refused(stream: number, slot: Slot, commit: ModelCommit): void {
    this.#events.refused(commit)
    slot.conflicts++
    if (slot.command.kind !== 'work' && slot.conflicts >= TRIES) this.#answer(stream, slot, 'contention')
    else this.#decide(stream, slot)
  }

  /** Acknowledged and read, and nothing stands in its place: that copy was void, so it is sent again. */
  #undecided(slot: Slot): void {
    if (!this.#rules.resendsUndecided || slot.state !== 'acknowledged' || !slot.acknowledged) return
    if (!this.tail.hasRead(slot.acknowledged.end)) return
    slot.state = 'staged'
    this.#events.resent()
  }

  #answer(stream: number, slot: Slot, outcome: Answer['outcome'], commitId?: string): void {
    this.#slots.delete(stream)
    const { command, held, came, repeated } = slot
    const now = this.#partition.records.length
    this.#events.answered({
      writer: this.number,
      stream,
      command,
      held,
      outcome,
      commitId,
      came,
      read: this.tail.cursor,
      now,
      repeated,
    })
  }
}

/** The attempt that a commit started. */
function attemptAfter(tail: Tail, stream: number, commit: ModelCommit): number {
  for (const { commit: of, recorded } of tail.view(stream).records.slice(commit.base)) {
    if (of.id !== commit.id) break
    const { event } = recorded
    if (event?.type === 'run.started/1' || event?.type === 'run.recovered/1') return event.data.attempt
  }
  return attemptOf(tail.view(stream).folded)
}
