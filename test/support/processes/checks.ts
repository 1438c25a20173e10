import { expect } from 'vitest'
import type { LogEvent } from '../../../src/events/index.ts'
import { isThreadlogError } from '../../../src/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { toolCalls } from '../../../src/messages/index.ts'
import {
  findThread,
  foldStream,
  listWaits,
  messageHistory,
  stateHash,
  type ThreadState,
  type ThreadStore,
  threadStatus,
} from '../../../src/projections/index.ts'
import { recordsOf, streamsOf } from './streams.ts'

/**
 * What must hold of every stream whatever was killed: its chain is whole, folding it from the first event gives the state the live store
 * has, the tables say what the fold says, and its history is one a model accepts.
 */
export async function checkStream(store: ThreadStore, stream: string): Promise<ThreadState> {
  const { backend } = store
  const folded = foldStream(await recordsOf(backend, stream))
  expect(folded.quarantine).toBeUndefined()
  const live = await store.load(stream)
  expect(live.hash).toBe(folded.head.hash)
  expect(stateHash(live)).toBe(stateHash(folded.state))
  checkTables(backend, folded.state, stream)
  checkHistory(folded.state)
  return folded.state
}

function checkTables(backend: LogBackend, state: ThreadState, stream: string): void {
  const pending = [...state.waits.values()].filter((wait) => wait.status === 'pending')
  expect(findThread(backend.tables, stream)).toMatchObject({
    version: state.version,
    status: threadStatus(state),
    run_id: state.run?.runId ?? null,
    attempt: state.run?.attempt ?? null,
    open_waits: pending.length,
    requested_agent: state.requested[0]?.agent ?? null,
    quarantined_at: null,
  })
  const rows = listWaits(backend.tables, { stream, status: 'any', limit: 10_000 })
  const waits = [...state.waits.values(), ...[...state.closedWaits].map(([, wait]) => wait)]
  const brief = (id: string, status: string, revision: number) => `${id} ${status} ${revision}`
  expect(rows.map((row) => brief(row.continuation_id, row.status, row.revision)).sort()).toEqual(
    waits.map((wait) => brief(wait.id, wait.status, wait.revision)).sort(),
  )
}

/** Each call of each response is answered exactly once before the next response; only the last response may have open calls. */
export function checkHistory(state: ThreadState): void {
  const messages = messageHistory(state)
  const open = new Set<string>()
  for (const message of messages) {
    if (message.kind === 'response') {
      expect([...open]).toEqual([])
      for (const call of toolCalls(message)) open.add(call.tool_call_id)
    } else
      for (const part of message.parts) if (part.part_kind === 'tool-return') expect(open.delete(part.tool_call_id)).toBe(true)
  }
  if (threadStatus(state) === 'idle') expect([...open]).toEqual([])
}

/** Checks all streams of a file; answers their states. */
export async function checkLog(store: ThreadStore): Promise<ThreadState[]> {
  const states: ThreadState[] = []
  for (const stream of streamsOf(store.backend)) states.push(await checkStream(store, stream))
  return states
}

/** Every record of `results` has exactly one final receipt; answers the verdicts by offset. */
export function checkReceipts(backend: LogBackend): Map<number, string> {
  const receipts = backend.tables.all<{ source_offset: number; verdict: string; final: number }>(
    "SELECT source_offset, verdict, final FROM threadlog_receipts WHERE source_topic = 'results' ORDER BY source_offset",
  )
  const offsets = backend.tables.all<{ offset: number }>('SELECT offset FROM results ORDER BY offset').map((row) => row.offset)
  expect(receipts.filter((receipt) => receipt.final === 1).map((receipt) => receipt.source_offset)).toEqual(offsets)
  return new Map(receipts.map((receipt) => [receipt.source_offset, receipt.verdict]))
}

/** The code of what `work` throws; fails if it throws nothing, or anything else. */
export async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work()
  } catch (error) {
    if (isThreadlogError(error)) return error.code
    throw error
  }
  throw new Error('Nothing was thrown.')
}

/** One call that was dispatched, however often, and how it ended. */
export interface DispatchedCall {
  tool: string
  key: string
  dispatches: number
  settlement: string | undefined
  reason: string | null
}

/** The dispatched calls of a thread. A call id may come again in a later response: then it has another key. */
export function dispatchedCalls(events: readonly LogEvent[]): DispatchedCall[] {
  const calls = new Map<string, DispatchedCall>()
  const keys = new Map<string, string>()
  for (const event of events) {
    if (event.type === 'tool.dispatched/1') {
      const { call_id, idempotency_key: key, tool } = event.data
      const dispatches = (calls.get(key)?.dispatches ?? 0) + 1
      calls.set(key, { tool: tool.split('/').at(-1) ?? '', key, dispatches, settlement: undefined, reason: null })
      keys.set(call_id, key)
    }
    const call = event.type === 'tool.settled/1' ? calls.get(keys.get(event.data.call_id) ?? '') : undefined
    if (!call || event.type !== 'tool.settled/1') continue
    call.settlement = event.data.settlement
    call.reason = event.data.reason
    keys.delete(event.data.call_id)
  }
  return [...calls.values()]
}
