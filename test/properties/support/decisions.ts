import { Payload } from '../../../src/base/index.ts'
import { type Decision, decodeState, encodeState, type ThreadState } from '../../../src/projections/index.ts'

type Decide = (state: ThreadState) => Decision | undefined

/**
 * Decides twice: on the state as a snapshot would restore it, and on the state itself, frozen. What depends on anything but the state and
 * the command shows as a difference; what changes the state throws.
 */
export function sameDecision(state: ThreadState, decide: Decide): { decision: Decision | undefined; fault: string | undefined } {
  const before = JSON.stringify(encodeState(state))
  const restored = decodeState(Payload.fromBytes(Payload.of(encodeState(state)).bytes).value)
  const first = textOf(attempt(() => decide(restored)))
  freeze(state)
  const second = attempt(() => decide(state))
  if (JSON.stringify(encodeState(state)) !== before) return { ...second, fault: 'a decision changed the state it was made on' }
  const fault = first === textOf(second) ? undefined : `decided ${first}, then ${textOf(second)}`
  if (!second.decision && second.error !== undefined) throw second.error
  return { decision: freeze(second.decision), fault }
}

interface Attempted {
  decision: Decision | undefined
  error?: unknown
}

function attempt(decide: () => Decision | undefined): Attempted {
  try {
    return { decision: decide() }
  } catch (error) {
    return { decision: undefined, error }
  }
}

/** Payloads write themselves as what they hold. */
const textOf = ({ decision, error }: Attempted): string =>
  error === undefined ? JSON.stringify(decision ?? null) : `an error: ${(error as Error).message}`

/** Freezes all that can be reached. Lists and facts keep theirs private. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (ArrayBuffer.isView(value)) return value
  Object.freeze(value)
  if (value instanceof Payload) freeze(value.value)
  for (const item of value instanceof Map ? value.values() : Object.values(value)) freeze(item)
  return value
}
