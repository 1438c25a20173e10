import { deepEqual } from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { systemClock, systemIds } from '../../../../src/base/index.ts'
import { type AuditRecord, LogContinuationStore } from '../../../../src/continuations/index.ts'
import { type LogBackend, openLog } from '../../../../src/log/index.ts'
import { Folds, indexProjectors, ThreadStore } from '../../../../src/projections/index.ts'
import { type Fixture, helpers } from './helpers.ts'
import { audit, generatedIds, isolation, times } from './records.ts'
import { type OpenStore, runSequence } from './sequence.ts'
import { hasBigInteger, live, Skip } from './values.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
type Any = any

export interface Group {
  group: string
  fixture: Fixture
  vectors: Any[]
}

const NO_FIXTURE: Fixture = { scopes: {}, providers: {}, resumes: {} }

/** The vector files of a folder. */
export function groups(folder = new URL('../../../vectors/continuation/', import.meta.url)): Group[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return files.map((name) => {
    const { group, fixture = NO_FIXTURE, vectors } = JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
    return { group, fixture, vectors }
  })
}

/** An empty store on a new log, and its audit lines. */
export const openStore = async (url: 'memory' | `sqlite:${string}`): ReturnType<OpenStore> => storeOn(await openLog(url))

/** The same on a log that is open and empty. */
export const storeOn = async (backend: LogBackend): ReturnType<OpenStore> => {
  const folds = new Folds()
  await backend.install(indexProjectors(folds))
  const store = await ThreadStore.open({ backend, clock: systemClock, ids: systemIds, folds })
  const lines: AuditRecord[] = []
  const made = new LogContinuationStore({ store, backend: 'memory', audit: (line) => lines.push(line) })
  return { store: Object.assign(made, { lines }), close: () => backend.close() }
}

const MARKS = ['quirk', 'library_specific', 'python_specific'] as const

/** Runs one vector. Resolves with why it is skipped, if it is. @throws AssertionError when it differs without a mark */
export async function runVector(vector: Any, fixture: Fixture, open: OpenStore): Promise<string | undefined> {
  try {
    await compare(vector, fixture, open)
    return undefined
  } catch (error) {
    if (error instanceof Skip) return error.message
    const mark = MARKS.find((name) => vector[name])
    if (mark === undefined) throw error
    return mark === 'quirk' ? vector.quirk : mark.replace('_', ' ')
  }
}

const single: Record<string, (vector: Any, fixture: Fixture, open: OpenStore) => Promise<unknown>> = {
  isolation,
  times,
  audit,
  'generated-ids': generatedIds,
}

async function compare(vector: Any, fixture: Fixture, open: OpenStore): Promise<void> {
  const { kind } = vector
  if (kind === 'sequence') return compareSequence(vector, fixture, open)
  if (single[kind]) return deepEqual(await single[kind](vector, fixture, open), vector.expect)
  const helper = helpers[kind]
  if (!helper) throw new Error(`no runner for ${kind}`)
  const got = await helper(vector, fixture)
  if (hasBigInteger(vector) && 'error' in got) return
  const { canonical: _, ...want } = informed(vector.expect) as Record<string, unknown>
  deepEqual(plain(got), plain(live(want)))
}

async function compareSequence(vector: Any, fixture: Fixture, open: OpenStore): Promise<void> {
  const got = await runSequence(vector, fixture, open)
  if (hasBigInteger(vector) && refusesBigIntegers(vector, got.ops as object[])) return
  const wanted: Any[] = (vector.expect_one_of ?? [vector.expect]).map((one: unknown) => plain(live(informed(one))))
  const { ops, final } = plain(got) as Any
  const fits = (want: Any) => {
    deepEqual(ops, want.ops)
    if ('final' in want) deepEqual(final, want.final)
  }
  const last = wanted.pop()
  for (const want of wanted)
    try {
      return fits(want)
    } catch {
      // Another one may fit.
    }
  fits(last)
}

/** Without what is informative only. */
function informed(value: Any): unknown {
  if (Array.isArray(value)) return value.map(informed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => (key === 'python' || key === 'run_audit' ? [] : [[key, informed(item)]])),
  )
}

/** As JSON: −0 is 0 here. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** An integer beyond 2^53 must survive or be refused, never rounded. */
const refusesBigIntegers = (vector: { ops: unknown[] }, ops: object[]): boolean =>
  vector.ops.every((op, i) => !hasBigInteger(op) || 'error' in (ops[i] ?? {}))
