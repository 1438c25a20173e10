import { type Border, Fault } from './border.ts'
import { keptAlive, outcome, Strays } from './run.ts'

/**
 * The smallest input found that shows the same fault, each tried on a rig of its own. `alone` is false when the input needs what other
 * inputs left behind: then it is the input as it was.
 */
export async function minimised<I>(border: Border<I>, input: I, fault: Fault, ms: number): Promise<{ input: I; alone: boolean }> {
  const until = performance.now() + ms
  const shows = async (candidate: I): Promise<boolean> => {
    const result = await alone(border, candidate)
    return result instanceof Fault && result.kind === fault.kind && result.what === fault.what
  }
  if (!(await shows(input))) return { input, alone: false }
  for (let smaller: I | undefined = input; smaller !== undefined && performance.now() < until; ) {
    input = smaller
    smaller = undefined
    for (const candidate of border.simpler(input)) {
      if (performance.now() >= until) break
      if (!(await shows(candidate))) continue
      smaller = candidate
      break
    }
  }
  return { input, alone: true }
}

/** One input on a new rig. */
export async function alone<I>(border: Border<I>, input: I) {
  const stray = new Strays()
  const alive = keptAlive()
  const rig = await border.open()
  try {
    const result = await outcome(border, rig, input, stray)
    if (result instanceof Fault) return result
    await rig.settle?.()
    return stray.first() ?? result
  } catch (error) {
    if (error instanceof Fault) return error
    throw error
  } finally {
    await Promise.race([rig.close().catch(() => {}), new Promise((resolve) => setTimeout(resolve, 2_000))])
    stray.stop()
    alive()
  }
}

/** Shorter texts: halves, then pieces cut out, then single characters at the end. */
export function* shorterTexts(text: string): Iterable<string> {
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    if (size < 4 && text.length > 400) return
    for (let start = 0; start < text.length; start += size) yield text.slice(0, start) + text.slice(start + size)
  }
}

/** Lists with pieces cut out. */
export function* shorterLists<T>(list: readonly T[]): Iterable<T[]> {
  for (let size = Math.ceil(list.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let start = 0; start < list.length; start += size) yield [...list.slice(0, start), ...list.slice(start + size)]
}

/** JSON values with a key, an item or a piece of text less, or with null in place of a part. */
export function* simplerValues(value: unknown): Iterable<unknown> {
  if (typeof value === 'string') {
    if (value !== '') yield ''
    if (value.length > 1) yield* shorterTexts(value)
    return
  }
  if (typeof value !== 'object' || value === null) {
    if (value !== null) yield null
    return
  }
  if (Array.isArray(value)) {
    yield* shorterLists(value)
    for (const [i, item] of value.entries()) for (const simple of simplerValues(item)) yield value.with(i, simple)
    return
  }
  const entries = Object.entries(value)
  for (const list of shorterLists(entries)) yield Object.fromEntries(list)
  for (const [key, item] of entries)
    for (const simple of simplerValues(item)) yield Object.fromEntries(entries.map(([k, v]) => [k, k === key ? simple : v]))
}
