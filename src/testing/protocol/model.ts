import { disturb } from './disturb.ts'
import { type Command, decide, runId } from './domain.ts'
import { EncodedWire } from './encoded-wire.ts'
import { check, Violation } from './failure.ts'
import { LightWire } from './light-wire.ts'
import { Network } from './network.ts'
import { Partition } from './partition.ts'
import { count, type ProtocolReport } from './report.ts'
import type { ProtocolRules } from './rules.ts'
import type { Answer } from './slot.ts'
import type { CommandKind, ProtocolSchedule, ProtocolStep } from './steps.ts'
import { fingerprint, Tail, voidText } from './tail.ts'
import { Truth } from './truth.ts'
import type { ModelCommit } from './wire.ts'
import { Writer } from './writer.ts'

export type ModelSize = Omit<ProtocolSchedule, 'steps'>

/** Rounds in which everything under way must end, once nothing fails any more. */
const LAST_ROUNDS = 40
const ALL = Number.POSITIVE_INFINITY

/** One partition, its writers and readers, and what is known of them from above. */
export class ProtocolModel {
  readonly size: ModelSize
  readonly partition: Partition
  readonly network: Network
  readonly truth: Truth
  readonly writers: readonly Writer[]
  /** The tails of the writers, then the readers. */
  readonly nodes: readonly Tail[]
  readonly #report: ProtocolReport
  readonly #answers: Answer[] = []
  readonly #refused: ModelCommit[] = []
  readonly #runs: string[][]
  #commands = 0

  /**
   * @param rules what writers and readers go by
   * @param truths what the reader goes by that the others are compared with
   */
  constructor(size: ModelSize, rules: ProtocolRules, truths: ProtocolRules, report: ProtocolReport) {
    this.size = size
    this.#report = report
    this.partition = new Partition(size.records === 'light' ? new LightWire(size.streams) : new EncodedWire(size.streams))
    this.network = new Network(this.partition)
    this.truth = new Truth(this.partition, truths)
    const events = {
      answered: (answer: Answer) => this.#answered(answer),
      refused: (commit: ModelCommit) => void this.#refused.push(commit),
      ambiguous: () => void report.sends.ambiguous++,
      resent: () => void report.sends.repeatedUndecided++,
    }
    this.writers = Array.from({ length: size.writers }, (_, n) => new Writer(n, this.partition, rules, events))
    const readers = Array.from({ length: size.readers }, () => new Tail(this.partition, rules))
    this.nodes = [...this.writers.map((writer) => writer.tail), ...readers]
    this.#runs = Array.from({ length: size.streams }, () => [])
  }

  /** Runs a step; false if it had nothing to act on. */
  apply(step: ProtocolStep): boolean {
    const done = this.#apply(step)
    this.truth.follow()
    return done
  }

  #apply(step: ProtocolStep): boolean {
    switch (step[0]) {
      case 'command':
        return this.#command(step[1], step[2], step[3], step[4], step[5])
      case 'flush':
        return this.writers[step[1]]?.flush(this.network, step[2], step[3]) ?? false
      case 'deliver':
        return this.network.deliver(step[1])
      case 'read':
        return this.#read(step[1], step[2])
      case 'save':
        return this.#on(step[1], (node) => node.save())
      case 'rewind':
        return this.#on(step[1], (node) => node.restart())
      case 'kill':
        this.writers[step[1]]?.kill()
        return step[1] < this.writers.length
      case 'disturb':
        return step[2] < this.size.streams && disturb(this.#surroundings, step[1], step[2], step[3])
    }
  }

  #on(number: number, act: (node: Tail) => void): boolean {
    const node = this.nodes[number]
    if (node) act(node)
    return node !== undefined
  }

  #read(number: number, records: number): boolean {
    const node = this.nodes[number]
    if (!node || node.lag === 0) return false
    const writer = this.writers[number]
    if (writer) writer.read(records)
    else node.read(records)
    return true
  }

  #command(number: number, stream: number, kind: CommandKind, size: number, pick: number): boolean {
    const writer = this.writers[number]
    const runs = this.#runs[stream]
    if (!writer || !runs || !writer.isFree(stream)) return false
    const id = `k${++this.#commands}`
    const command: Command = { id, kind, size, run: runs[pick % Math.max(1, runs.length)] ?? 'none' }
    if (kind === 'start') for (let n = 0; n < size; n++) runs.push(runId(id, n))
    writer.command(stream, command)
    return true
  }

  get #surroundings() {
    return {
      partition: this.partition,
      network: this.network,
      head: (stream: number) => this.truth.tail.view(stream).folded.head,
      underWay: (pick: number) => this.writers[pick % this.writers.length]?.underWay(pick),
    }
  }

  #answered(answer: Answer): void {
    this.#answers.push(answer)
    count(this.#report.answers, answer.outcome)
    if (answer.outcome !== 'accepted' && answer.outcome !== 'contention') this.#checkNegative(answer)
  }

  /** A negative answer must have been so at some moment since the command came, and decided on what the log held by then. */
  #checkNegative({ writer, stream, command, held, outcome, came, read, now }: Answer): void {
    this.truth.follow()
    const moments = this.truth.between(stream, came, now)
    const said = () => `Writer ${writer} said ${outcome} to ${command.kind}`
    check(
      moments.some((folded) => negativeOf(folded, command, held) === outcome),
      'negative-untrue',
      () => `${said()}, which was so at no moment since the command came.`,
    )
    check(
      read >= came,
      'negative-before-barrier',
      () => `${said()} after ${read} records; the log had ${came} when the command came.`,
    )
  }

  /** Lets everything arrive and be read, without faults, until every command has its answer. */
  drain(): void {
    for (let round = 0; ; round++) {
      while (this.network.underWay > 0) this.apply(['deliver', 0])
      for (let node = 0; node < this.nodes.length; node++) this.#read(node, ALL)
      if (this.writers.every((writer) => writer.busy === 0)) break
      check(round < LAST_ROUNDS, 'undecided', () => `A command has no answer after ${LAST_ROUNDS} rounds without a fault.`)
      for (const writer of this.writers) this.apply(['flush', writer.number, 'delivered', 0])
    }
    for (let node = 0; node < this.nodes.length; node++) this.#read(node, ALL)
  }

  /** What must hold of everything once all is read. */
  verify(): void {
    this.truth.checkRule()
    this.truth.checkQuarantines()
    this.#checkAnswers()
    this.#checkNodes()
    const { commits, restarts } = this.#report
    const { tail, accepted, revived } = this.truth
    this.#report.records += this.partition.records.length
    restarts.afterRecord += this.partition.records.length
    commits.accepted += accepted.size
    commits.refused += this.#refused.length
    commits.revived += revived
    for (const { reason } of tail.voids) count(commits.void, reason)
    for (const { folded } of tail.streams) if (folded.quarantine) this.#report.quarantined++
  }

  #checkAnswers(): void {
    const { truth } = this
    const applied = this.#applied()
    for (const commit of this.#refused)
      check(!truth.has(commit.id), 'answer-contradicted', () => `Commit ${commit.id} was called refused and is accepted.`)
    for (const { outcome, commitId, command, writer, repeated } of this.#answers) {
      const by = applied.get(command.id)
      const said = `Writer ${writer} said ${outcome} to ${command.id} (${command.kind})`
      if (outcome === 'accepted')
        check(commitId !== undefined && by === commitId, 'answer-contradicted', () => `${said}: the log does not have it.`)
      // Contention says "ask again": a copy that a dead process sent may still arrive.
      else if (outcome !== 'contention' || !repeated)
        check(by === undefined, 'answer-contradicted', () => `${said}, but ${by} has applied it.`)
    }
  }

  /** Commit that applied each command. */
  #applied(): Map<string, string> {
    const applied = new Map<string, string>()
    for (const { records } of this.truth.tail.streams)
      for (const { commit, recorded } of records) {
        const id = recorded.event?.causation?.command_id
        if (!id || id === 'nobody') continue
        const other = applied.get(id)
        check(
          other === undefined || other === commit.id,
          'applied-twice',
          () => `Command ${id} was applied by ${other} and by ${commit.id}.`,
        )
        applied.set(id, commit.id)
      }
    return applied
  }

  #checkNodes(): void {
    const full = this.size.records === 'encoded'
    const { tail } = this.truth
    const [state, voids] = [fingerprint(tail, full), voidText(tail.voids)]
    for (const [n, node] of this.nodes.entries()) {
      check(
        fingerprint(node, full) === state,
        'readers-differ',
        () => `Node ${n} has another state than a reader from the first record.`,
      )
      check(
        voidText(node.voids) === voids,
        'readers-differ',
        () => `Node ${n} found other voids than a reader from the first record.`,
      )
    }
  }
}

const negativeOf = (...[folded, command, held]: [Parameters<typeof decide>[0], Command, number]) => {
  const proposal = decide(folded, command, '', held)
  return 'negative' in proposal ? proposal.negative : undefined
}

/** Runs `act`; an exception that is no finding of the model becomes one. */
export function guarded(act: () => void): Violation | undefined {
  try {
    act()
    return undefined
  } catch (error) {
    if (error instanceof Violation) return error
    return new Violation('threw', error instanceof Error ? error.message : String(error), error)
  }
}
