import { isJsonObject, type JsonObject, type JsonValue } from '../base/index.ts'
import { messageOf } from './messages.ts'
import type { HistoryEntry, RunState, RunUsage, ThreadState } from './state.ts'

export const NO_USAGE: RunUsage = { requests: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** The namespace in which an exported state tells what its latest run used (state spec §1.2). Made from the log, never stored beside it. */
export const USAGE_NAMESPACE = 'threadlog.usage'
const USAGE_VERSION = '1'

const NAMES = {
  requests: 'requests',
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cacheReadTokens: 'cache_read_tokens',
  cacheWriteTokens: 'cache_write_tokens',
} as const satisfies Record<keyof RunUsage, string>

const FIELDS = Object.keys(NAMES) as (keyof RunUsage)[]

const sumOf = (a: RunUsage, b: RunUsage): RunUsage =>
  Object.fromEntries(FIELDS.map((field) => [field, a[field] + b[field]])) as unknown as RunUsage

/** What one message says that it used; a request uses nothing. */
function usedBy(entry: HistoryEntry): RunUsage {
  const message = messageOf(entry)
  if (message.kind !== 'response') return NO_USAGE
  const usage = message.usage as unknown as JsonObject
  const tokens = (field: keyof RunUsage) => (typeof usage[NAMES[field]] === 'number' ? (usage[NAMES[field]] as number) : 0)
  return { ...(Object.fromEntries(FIELDS.map((field) => [field, tokens(field)])) as unknown as RunUsage), requests: 1 }
}

/** What a run has used, with what it went on from: as its responses say themselves, whether they still stand in the history or not. */
export function usageOf(state: ThreadState, runId: string): RunUsage {
  const run = state.run?.runId === runId ? state.run : state.runs.get(runId)
  let sum = run?.spent ?? NO_USAGE
  for (let i = state.history.length - 1; i >= 0; i--) {
    const entry = state.history.at(i)
    if (entry?.runId === runId) sum = sumOf(sum, usedBy(entry))
    else if (entry?.runId !== null) break
  }
  return sum
}

/** What the latest run of a thread has used, else what an imported state tells; undefined if there is neither. */
export function latestUsage(state: ThreadState): RunUsage | undefined {
  const runId = state.run?.runId ?? state.runs.last?.[0]
  if (runId !== undefined) return usageOf(state, runId)
  const entry = state.capabilities.get(USAGE_NAMESPACE)
  return entry && readUsage({ version: entry.version, data: entry.data.value })
}

/** The entry of {@link USAGE_NAMESPACE}. */
export const usageEntry = (usage: RunUsage): { version: string; data: JsonObject } => ({
  version: USAGE_VERSION,
  data: Object.fromEntries(FIELDS.map((field) => [NAMES[field], usage[field]])),
})

/** Undefined for what is no such entry. */
export function readUsage(entry: { readonly version: string; readonly data: JsonValue } | undefined): RunUsage | undefined {
  const value = entry?.version === USAGE_VERSION ? entry.data : undefined
  if (!isJsonObject(value)) return undefined
  const isCount = (found: unknown) => Number.isSafeInteger(found) && (found as number) >= 0
  if (!FIELDS.every((field) => isCount(value[NAMES[field]]))) return undefined
  return Object.fromEntries(FIELDS.map((field) => [field, value[NAMES[field]] as number])) as unknown as RunUsage
}

/** The run when these entries leave the history: what they used, they have used. */
export function withSpent(run: RunState, gone: readonly HistoryEntry[]): RunState {
  const own = gone.filter(({ runId, role }) => runId === run.runId && role === 'response')
  return own.length === 0 ? run : { ...run, spent: own.map(usedBy).reduce(sumOf, run.spent ?? NO_USAGE) }
}
