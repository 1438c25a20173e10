import type { LogFaults } from './faulty-log.ts'
import { type Random, Weighted } from './random.ts'
import { COMMAND_KINDS, type CommandKind } from './steps.ts'

/**
 * What happens next. Numbers are places, taken modulo what there is. With `beside` 1 it begins without waiting for the steps before it.
 * - a command reaches a writer; with `apt` 1 it is what the thread's state calls for, if it calls for something
 * - a writer goes on with a command; is killed, and another takes its place
 * - a reader reads up to `most` records, and stops
 * - a commit is appended that no writer would make: on a stale base, on another event, ahead of the stream, an old one again
 * - an event is appended that no thread can fold
 */
export type PortStep =
  | readonly [
      ...['command', beside: number, writer: number, stream: number],
      ...[kind: CommandKind, apt: number, size: number, pick: number],
    ]
  | readonly ['go', beside: number, writer: number, stream: number]
  | readonly ['kill', beside: number, writer: number]
  | readonly ['read', beside: number, reader: number, most: number]
  | readonly ['forge', beside: number, stream: number, how: number, pick: number]
  | readonly ['poison', beside: number, stream: number]

/** All that a run of the port-level model depends on, but for the log and its timing. */
export interface PortSchedule {
  /** Of the faults between writers and log. */
  readonly seed: number
  readonly writers: number
  readonly readers: number
  readonly streams: number
  readonly faults: LogFaults
  readonly steps: readonly PortStep[]
}

const kinds = new Weighted<PortStep[0]>([
  ['command', 30],
  ['go', 34],
  ['read', 20],
  ['kill', 3],
  ['forge', 10],
  ['poison', 1],
])
const commands = new Weighted<CommandKind>(
  COMMAND_KINDS.map((kind) => [kind, { open: 3, take: 10, work: 30, start: 30, cancel: 26, repair: 4 }[kind]]),
)

type Size = Pick<PortSchedule, 'writers' | 'readers' | 'streams'>

/** Steps of which up to four go on at a time. */
export function portSteps(random: Random, size: Size, count: number): PortStep[] {
  const steps: PortStep[] = []
  while (steps.length < count) {
    const together = 1 + random.below(4)
    for (let n = 0; n < together; n++) steps.push(portStep(random, size, n === 0 ? 0 : 1))
  }
  return steps
}

function portStep(random: Random, { writers, readers, streams }: Size, beside: number): PortStep {
  const kind = kinds.pick(random)
  const stream = random.below(streams)
  const writer = random.below(writers)
  switch (kind) {
    case 'command': {
      const apt = random.chance(70) ? 1 : 0
      return [kind, beside, writer, stream, commands.pick(random), apt, 1 + random.below(3), random.below(16)]
    }
    case 'go':
      return [kind, beside, writer, stream]
    case 'kill':
      return [kind, beside, writer]
    case 'read':
      return [kind, beside, random.below(readers), 1 + random.below(6)]
    case 'forge':
      return [kind, beside, stream, random.below(4), random.below(64)]
    case 'poison':
      return [kind, beside, stream]
  }
}
