// A schedule is data: what happens, in which order. Every list of steps can be run, whatever stands in it: a step that has nothing to
// act on does nothing. So a schedule shrinks by leaving steps out.

/** What a writer is asked to do: {@link decide} says what each means. */
export const COMMAND_KINDS = ['open', 'take', 'work', 'start', 'cancel', 'repair'] as const
export type CommandKind = (typeof COMMAND_KINDS)[number]

/**
 * What becomes of one send of a batch:
 * - `delivered`: written and acknowledged
 * - `reply-lost`: written, but the writer hears of a failure
 * - `reply-late`: written, and the writer waits for the answer
 * - `request-lost`: not written, and the writer hears of a failure
 * - `late`: written some time later, perhaps after the writer has given up or died
 * - `twice`: written twice, acknowledged by the place of the second copy
 * - `torn`: only the first records are written, and the writer hears of a failure
 * - `split`: the first records are written now, the others some time later
 */
export const SENDS = ['delivered', 'reply-lost', 'reply-late', 'request-lost', 'late', 'twice', 'torn', 'split'] as const
export type Send = (typeof SENDS)[number]

/**
 * What anybody may append, or the log may do by itself:
 * - `undecodable`, `unfoldable`: an acceptable commit whose event this build cannot read, or cannot fold
 * - `garbage`: a record without an envelope
 * - `fork`: based on the stream's version, but on another event
 * - `wrong-base`: continues the head's hash under another base
 * - `malformed`, `broken-chain`, `headless`, `half`: records that are no whole commit
 * - `ahead`: a commit on top of one that is still under way, and a copy of it later
 * - `copy`: the records of a commit sent before, once more
 * - `hole`: offsets that no record has
 * - `stray`: a whole commit of a stream that does not live in this partition
 */
export const DISTURBANCES = [
  'undecodable',
  'unfoldable',
  'garbage',
  'fork',
  'wrong-base',
  'malformed',
  'broken-chain',
  'headless',
  'half',
  'ahead',
  'copy',
  'hole',
  'stray',
] as const
export type Disturbance = (typeof DISTURBANCES)[number]

/**
 * One step. `writer` and `node` are numbers (nodes: the writers' tails, then the readers), `stream` too; `pick` and `cut` choose among what
 * is there, counted round.
 * - `command`: a writer is asked for something of `size` events, if it has nothing under way on that stream
 * - `flush`: a writer sends all it has to send in one batch
 * - `deliver`: what is under way arrives
 * - `read`: a node reads up to `records` records
 * - `save`: a node saves its state with its next offset
 * - `rewind`: a node's tail starts again from what it saved; a writer keeps what it has under way
 * - `kill`: a writer's process dies and starts again from what it saved; its callers ask again
 * - `disturb`: see {@link Disturbance}
 */
export type ProtocolStep =
  | readonly [step: 'command', writer: number, stream: number, kind: CommandKind, size: number, pick: number]
  | readonly [step: 'flush', writer: number, send: Send, cut: number]
  | readonly [step: 'deliver', pick: number]
  | readonly [step: 'read', node: number, records: number]
  | readonly [step: 'save' | 'rewind', node: number]
  | readonly [step: 'kill', writer: number]
  | readonly [step: 'disturb', how: Disturbance, stream: number, pick: number]

/** How records are made: `light` ones cost little, `encoded` ones are bytes that every node decodes for itself. */
export type ProtocolRecords = 'light' | 'encoded'

/** All that a run of the model depends on. */
export interface ProtocolSchedule {
  readonly writers: number
  readonly readers: number
  readonly streams: number
  readonly records: ProtocolRecords
  readonly steps: readonly ProtocolStep[]
}

/** True for a step that is a fault: a send that does not simply succeed, a restart, a disturbance. */
export const isFault = (step: ProtocolStep): boolean =>
  step[0] === 'flush' ? step[2] !== 'delivered' : step[0] === 'rewind' || step[0] === 'kill' || step[0] === 'disturb'

/** What kind of fault it is, for counting. */
export const faultName = (step: ProtocolStep): string =>
  step[0] === 'flush' ? step[2] : step[0] === 'disturb' ? step[1] : step[0]
