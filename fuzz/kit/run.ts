import { type Border, Fault, type FaultKind, type Rig } from './border.ts'
import { nameOf } from './marker.ts'
import { minimised } from './minimise.ts'
import { Random } from './random.ts'

/** A broken promise, with the smallest input found that breaks it. */
export interface Found {
  readonly border: string
  readonly kind: FaultKind
  readonly what: string
  readonly more: string
  /** The seed and the number of the case, which make the input again. */
  readonly seed: string
  readonly case: number
  /** How many inputs broke it. */
  count: number
  input: unknown
  /** True if `input` alone breaks it on a new rig. */
  alone: boolean
}

export interface Report {
  readonly border: string
  readonly seed: string
  cases: number
  accepted: number
  /** Refused inputs by code. */
  refused: Record<string, number>
  /** Accepted inputs by code. */
  taken: Record<string, number>
  slowest: { case: number; ms: number }
  ms: number
  found: Found[]
}

export interface RunOptions {
  seed: string
  /** How long, in milliseconds. */
  ms: number
  /** The first case. Default 0. */
  from?: number
  /** At most so many cases. */
  cases?: number
  /** Milliseconds given to making one input smaller. Default 8,000; 0 keeps it as it is. */
  minimiseMs?: number
  /** Told before each case. */
  onCase?(number: number): void
  onReport?(report: Report): void
}

export const inputOf = <I>(border: Border<I>, seed: string, number: number): I =>
  border.generate(new Random(`${border.name}/${seed}/${number}`))

export const emptyReport = (border: string, seed: string): Report => ({
  border,
  seed,
  cases: 0,
  accepted: 0,
  refused: {},
  taken: {},
  slowest: { case: 0, ms: 0 },
  ms: 0,
  found: [],
})

/** Feeds inputs to a border until the time is up. */
export async function run<I>(border: Border<I>, o: RunOptions): Promise<Report> {
  const report = emptyReport(border.name, o.seed)
  const begun = performance.now()
  const stray = new Strays()
  const alive = keptAlive()
  let rig: Rig<I> | undefined
  let fed = 0
  const last = o.cases === undefined ? Number.POSITIVE_INFINITY : (o.from ?? 0) + o.cases
  let number = o.from ?? 0
  try {
    for (; number < last && performance.now() - begun < o.ms; number++) {
      o.onCase?.(number)
      const input = inputOf(border, o.seed, number)
      rig ??= await border.open()
      fed++
      const fault = await one(border, rig, input, fed % (border.settleAfter ?? 200) === 0, stray, report, number)
      if (fault) {
        await note(border, fault, input, number, o, report)
        await retire(rig)
        rig = undefined
        stray.clear()
      }
      if (fed % (border.renewAfter ?? 2_000) === 0 && rig) {
        const late = await retire(rig)
        if (late) await note(border, late, undefined, number, o, report)
        rig = undefined
      }
      report.ms = performance.now() - begun
      o.onReport?.(report)
    }
    const fault = rig && (await settled(rig, stray))
    if (fault) await note(border, fault, undefined, number - 1, o, report)
    const late = rig && (await retire(rig))
    if (late) await note(border, late, undefined, number - 1, o, report)
  } finally {
    stray.stop()
    alive()
  }
  report.ms = performance.now() - begun
  return report
}

/** A promise that is never kept must end as a hang, not end the process. Returns what lets it end. */
export function keptAlive(): () => void {
  const timer = setInterval(() => {}, 60_000)
  return () => clearInterval(timer)
}

async function one<I>(
  border: Border<I>,
  rig: Rig<I>,
  input: I,
  settles: boolean,
  stray: Strays,
  report: Report,
  number: number,
): Promise<Fault | undefined> {
  const at = performance.now()
  const result = await outcome(border, rig, input, stray)
  const ms = performance.now() - at
  if (ms > report.slowest.ms) report.slowest = { case: number, ms: Math.round(ms) }
  report.cases++
  if (result instanceof Fault) return result
  if (result.accepted) report.accepted++
  const codes = result.accepted ? report.taken : report.refused
  codes[result.code] = (codes[result.code] ?? 0) + 1
  return settles ? settled(rig, stray) : undefined
}

/** One input on a rig: its outcome, or the fault it shows. */
export async function outcome<I>(border: Border<I>, rig: Rig<I>, input: I, stray: Strays) {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Fault>((resolve) => {
    timer = setTimeout(() => resolve(new Fault('hang', `no end within ${border.limitMs} ms`)), border.limitMs)
  })
  try {
    const result = await Promise.race([rig.try(input), late])
    await new Promise((resolve) => setImmediate(resolve))
    return stray.first() ?? result
  } catch (error) {
    return error instanceof Fault ? error : crash(error)
  } finally {
    clearTimeout(timer)
  }
}

async function settled<I>(rig: Rig<I>, stray: Strays): Promise<Fault | undefined> {
  try {
    await rig.settle?.()
    return stray.first()
  } catch (error) {
    return error instanceof Fault ? error : crash(error)
  }
}

const crash = (error: unknown): Fault =>
  new Fault('crash', nameOf(error), error instanceof Error ? (error.stack ?? error.message) : String(error))

/** Closes a rig; whatever was fed, that must come to an end. */
async function retire<I>(rig: Rig<I>): Promise<Fault | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Fault>((resolve) => {
    timer = setTimeout(() => resolve(new Fault('hang', 'closing does not end')), 5_000)
  })
  try {
    return (await Promise.race([rig.close(), late])) ?? undefined
  } catch (error) {
    return error instanceof Fault ? error : new Fault('crash', `closing: ${nameOf(error)}`)
  } finally {
    clearTimeout(timer)
  }
}

async function note<I>(border: Border<I>, fault: Fault, input: I | undefined, number: number, o: RunOptions, report: Report) {
  const { kind, what, more } = fault
  const known = report.found.find((found) => found.kind === kind && found.what === what)
  if (known) {
    known.count++
    return
  }
  const found: Found = { border: border.name, kind, what, more, seed: o.seed, case: number, count: 1, input, alone: false }
  report.found.push(found)
  o.onReport?.(report)
  if (input === undefined || o.minimiseMs === 0) return
  const small = await minimised(border, input, fault, o.minimiseMs ?? 8_000)
  found.input = small.input
  found.alone = small.alone
}

/** Rejections and exceptions that nobody caught. */
export class Strays {
  #seen: Fault[] = []
  readonly #rejection = (error: unknown) => this.#seen.push(stray('rejection', error))
  readonly #exception = (error: unknown) => this.#seen.push(stray('crash', error))

  constructor() {
    process.on('unhandledRejection', this.#rejection)
    process.on('uncaughtException', this.#exception)
  }

  first(): Fault | undefined {
    return this.#seen.shift()
  }

  clear(): void {
    this.#seen = []
  }

  stop(): void {
    process.off('unhandledRejection', this.#rejection)
    process.off('uncaughtException', this.#exception)
  }
}

const stray = (kind: 'rejection' | 'crash', error: unknown): Fault =>
  new Fault(kind, `uncaught ${nameOf(error)}`, error instanceof Error ? (error.stack ?? error.message) : String(error))
