import type { ProtocolSchedule, ProtocolStep } from './steps.ts'

/** Runs that shrinking may take. */
const MOST_RUNS = 4_000

/**
 * Makes a failing schedule smaller while it still fails: leaves out steps, from large pieces to single ones, then makes what is left plainer.
 * @param fails runs a schedule; true if it fails for the same reason
 */
export function shrink(schedule: ProtocolSchedule, fails: (schedule: ProtocolSchedule) => boolean): ProtocolSchedule {
  const search = smaller(schedule.steps, plainer, MOST_RUNS)
  let next = search.next()
  while (!next.done) next = search.next(fails({ ...schedule, steps: next.value }))
  return { ...schedule, steps: next.value }
}

/** The search itself: yields what to try, is told whether that still fails, and returns the smallest that does. */
export function* smaller<Step>(
  steps: readonly Step[],
  plainer: (step: Step) => readonly Step[],
  most: number,
): Generator<readonly Step[], readonly Step[], boolean> {
  let runs = 0
  function* still(candidate: readonly Step[]): Generator<readonly Step[], boolean, boolean> {
    return runs++ < most && (yield candidate)
  }
  for (let before = -1; before !== runs && runs < most; ) {
    const size = steps.length
    steps = yield* withoutPieces(steps, still)
    const plain = yield* simplified(steps, plainer, still)
    before = steps.length === size && plain === steps ? runs : -1
    steps = plain
  }
  return steps
}

type Still<Step> = (steps: readonly Step[]) => Generator<readonly Step[], boolean, boolean>
type Search<Step> = Generator<readonly Step[], readonly Step[], boolean>

function* withoutPieces<Step>(steps: readonly Step[], still: Still<Step>): Search<Step> {
  for (let piece = Math.ceil(steps.length / 2); piece >= 1; piece = piece === 1 ? 0 : Math.ceil(piece / 2))
    for (let at = steps.length - piece; at >= 0; at -= piece) {
      const fewer = [...steps.slice(0, at), ...steps.slice(at + piece)]
      if (yield* still(fewer)) steps = fewer
      at = Math.min(at, steps.length)
    }
  return steps
}

function* simplified<Step>(steps: readonly Step[], plainer: (step: Step) => readonly Step[], still: Still<Step>): Search<Step> {
  for (let at = 0; at < steps.length; at++)
    for (const plain of plainer(steps[at] as Step)) {
      const next = steps.with(at, plain)
      if (!(yield* still(next))) continue
      steps = next
      break
    }
  return steps
}

/** Simpler steps of the same kind, simplest first. */
function plainer(step: ProtocolStep): ProtocolStep[] {
  const out: ProtocolStep[] = []
  if (step[0] === 'flush' && step[2] !== 'delivered') out.push(['flush', step[1], 'delivered', 0])
  const least = (i: number) => ((step[0] === 'read' && i === 2) || (step[0] === 'command' && i === 4) ? 1 : 0)
  return [...out, ...lowered(step, least)]
}

/** The step with one of its numbers lowered: to the least that makes sense at its place, or by one. */
export function lowered<Step extends readonly (string | number)[]>(step: Step, least: (place: number) => number): Step[] {
  const out: Step[] = []
  for (const [i, value] of step.entries()) {
    if (typeof value !== 'number') continue
    for (const lower of new Set([least(i), value - 1]))
      if (lower >= least(i) && lower < value) out.push(step.with(i, lower) as never)
  }
  return out
}
