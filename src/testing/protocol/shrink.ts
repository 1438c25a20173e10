import type { ProtocolSchedule, ProtocolStep } from './steps.ts'

/** Runs that shrinking may take. */
const MOST_RUNS = 4_000

/**
 * Makes a failing schedule smaller while it still fails: leaves out steps, from large pieces to single ones, then makes what is left plainer.
 * @param fails runs a schedule; true if it fails for the same reason
 */
export function shrink(schedule: ProtocolSchedule, fails: (schedule: ProtocolSchedule) => boolean): ProtocolSchedule {
  let runs = 0
  const still = (steps: readonly ProtocolStep[]) => runs++ < MOST_RUNS && fails({ ...schedule, steps })
  let steps = schedule.steps
  for (let before = -1; before !== runs && runs < MOST_RUNS; ) {
    const size = steps.length
    steps = withoutPieces(steps, still)
    const plainer = simplified(steps, still)
    before = steps.length === size && plainer === steps ? runs : -1
    steps = plainer
  }
  return { ...schedule, steps }
}

type Still = (steps: readonly ProtocolStep[]) => boolean

function withoutPieces(steps: readonly ProtocolStep[], still: Still): readonly ProtocolStep[] {
  for (let piece = Math.ceil(steps.length / 2); piece >= 1; piece = piece === 1 ? 0 : Math.ceil(piece / 2))
    for (let at = steps.length - piece; at >= 0; at -= piece) {
      const fewer = [...steps.slice(0, at), ...steps.slice(at + piece)]
      if (still(fewer)) steps = fewer
      at = Math.min(at, steps.length)
    }
  return steps
}

function simplified(steps: readonly ProtocolStep[], still: Still): readonly ProtocolStep[] {
  for (let at = 0; at < steps.length; at++)
    for (const plain of plainer(steps[at] as ProtocolStep)) {
      const next = steps.with(at, plain)
      if (!still(next)) continue
      steps = next
      break
    }
  return steps
}

/** Simpler steps of the same kind, simplest first. */
function plainer(step: ProtocolStep): ProtocolStep[] {
  const [first, ...values] = step
  const out: ProtocolStep[] = []
  if (step[0] === 'flush' && step[2] !== 'delivered') out.push(['flush', step[1], 'delivered', 0])
  for (const [i, value] of values.entries()) {
    const least = step[0] === 'read' && i === 1 ? 1 : step[0] === 'command' && i === 3 ? 1 : 0
    if (typeof value !== 'number') continue
    for (const lower of new Set([least, value - 1]))
      if (lower >= least && lower < value) out.push([first, ...values.with(i, lower)] as never)
  }
  return out
}
