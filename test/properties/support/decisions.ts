import { canonicalJson, Payload } from '../../../src/base/index.ts'
import { type Decision, decodeState, encodeState, type ThreadState } from '../../../src/projections/index.ts'

type Decide = (state: ThreadState) => Decision | undefined

/**
 * Decides twice on the same state, frozen; every so often the first time on the state as a snapshot would restore it. What depends on
 * anything but state and command shows as a difference; what changes the state throws.
 */
export function sameDecision(state: ThreadState, decide: Decide): { decision: Decision | undefined; fault: string | undefined } {
  freeze(state)
  const written = state.version % 4 === 0 ? textOfState(state) : undefined
  const first = textOf(attempt(() => decide(written === undefined ? state : restored(state))))
  const second = attempt(() => decide(state))
  if (written !== undefined && textOfState(state) !== written)
    return { ...second, fault: 'a decision changed the state it was made on' }
  if (second.error !== undefined) throw second.error
  const fault = first === textOf(second) ? undefined : `decided ${first}, then ${textOf(second)}`
  return { decision: freeze(second.decision), fault }
}

const textOfState = (state: ThreadState): string => JSON.stringify(encodeState(state))
const restored = (state: ThreadState): ThreadState => decodeState(Payload.fromBytes(Payload.of(encodeState(state)).bytes).value)

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

/** What gets into the log. Payloads write themselves as what they hold. */
const textOf = ({ decision, error }: Attempted): string =>
  error === undefined
    ? canonicalJson(JSON.parse(JSON.stringify(decision ? [decision.context, decision.drafts] : null)))
    : `an error: ${(error as Error).message}`

/** Freezes all that can be reached. Lists and facts keep theirs private. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value)) return value
  Object.freeze(value)
  if (value instanceof Payload) freeze(value.value)
  for (const item of value instanceof Map ? value.values() : Object.values(value)) freeze(item)
  return value
}
