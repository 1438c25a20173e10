import type { ProtocolModel } from './model.ts'
import { type Random, Weighted } from './random.ts'
import {
  COMMAND_KINDS,
  type CommandKind,
  DISTURBANCES,
  type Disturbance,
  isFault,
  type ProtocolStep,
  SENDS,
  type Send,
} from './steps.ts'

/** What a schedule has at least. */
export interface Quota {
  readonly steps: number
  readonly faults: number
}

/** Steps by which schedules exceed their quota. */
const SPREAD = 17

const step = new Weighted<ProtocolStep[0]>([
  ['command', 22],
  ['flush', 30],
  ['deliver', 9],
  ['read', 24],
  ['save', 6],
  ['rewind', 3],
  ['kill', 2],
  ['disturb', 4],
])

const send = new Weighted<Send>(SENDS.map((name) => [name, name === 'delivered' ? 60 : name === 'split' ? 12 : 6]))

const command = new Weighted<CommandKind>(
  COMMAND_KINDS.map((kind) => [kind, { open: 1, take: 10, work: 30, start: 30, cancel: 26, repair: 3 }[kind]]),
)

const how = new Weighted<Disturbance>(DISTURBANCES.map((name) => [name, name === 'undecodable' || name === 'unfoldable' ? 1 : 2]))

/**
 * Makes a schedule step by step beside the running model, so that each step has something to act on. Only the steps count afterwards:
 * running them alone gives the same.
 * @param steps where they go; if the model throws, the last one is the one that made it
 */
export function generate(model: ProtocolModel, random: Random, quota: Quota, steps: ProtocolStep[]): void {
  const length = quota.steps + random.below(SPREAD)
  let faults = 0
  while (steps.length < length) {
    const next = length - steps.length <= quota.faults - faults ? fault(model, random) : choose(model, random)
    steps.push(next)
    if (model.apply(next)) {
      if (isFault(next)) faults++
    } else steps.pop()
  }
}

function choose(model: ProtocolModel, random: Random): ProtocolStep {
  const kind = step.pick(random)
  switch (kind) {
    case 'command': {
      const stream = random.below(model.size.streams)
      const { head, quarantine } = model.truth.tail.view(stream).folded
      const usual = head.version === 0 ? 'open' : quarantine ? 'repair' : undefined
      const what = usual && random.chance(usual === 'open' ? 80 : 50) ? usual : command.pick(random)
      const number = writer(model, random)
      const held = what !== 'work' || model.writers[number]?.holds(stream) || random.chance(30)
      return ['command', number, stream, held ? what : 'take', 1 + random.below(3), random.below(16)]
    }
    case 'flush':
      return ['flush', ready(model, random), send.pick(random), random.below(4)]
    case 'deliver':
      return ['deliver', random.below(4)]
    case 'read':
      return ['read', random.below(model.nodes.length), 1 + random.below(random.chance(30) ? 20 : 5)]
    case 'save':
    case 'rewind':
      return [kind, random.below(model.nodes.length)]
    case 'kill':
      return ['kill', writer(model, random)]
    case 'disturb':
      return disturbance(model, random)
  }
}

const writer = (model: ProtocolModel, random: Random): number => random.below(model.size.writers)

/** A writer with something to send, if one is found at once. */
function ready(model: ProtocolModel, random: Random): number {
  const first = writer(model, random)
  for (let i = 0; i < model.writers.length; i++) {
    const number = (first + i) % model.writers.length
    if (model.writers[number]?.hasToSend) return number
  }
  return first
}

/** A fault that is always possible. */
const fault = (model: ProtocolModel, random: Random): ProtocolStep =>
  random.chance(50) ? ['rewind', random.below(model.nodes.length)] : disturbance(model, random)

const disturbance = (model: ProtocolModel, random: Random): ProtocolStep => [
  'disturb',
  how.pick(random),
  random.below(model.size.streams),
  random.below(64),
]
