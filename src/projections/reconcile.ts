import { AppendList, isJsonObject, type JsonValue, Payload } from '../base/index.ts'
import type { LogEvent } from '../events/index.ts'
import { partsOf, resolved } from './messages.ts'
import type { HistoryEntry, SettledCall, ThreadState } from './state.ts'
import { known, unfoldable } from './unfoldable.ts'

/** Where the latest unknown outcome of a call stands. */
export interface UnknownOutcome {
  readonly settled: SettledCall
  /** Its place in the history; undefined while no request carries it. */
  readonly at: number | undefined
}

/** The latest outcome of a call, if it is unknown. */
export function unknownOutcome(state: ThreadState, callId: string): UnknownOutcome | undefined {
  const call = state.batch?.calls.get(callId)
  if (call?.settled && !call.composed)
    return call.settled.settlement === 'unknown' ? { settled: call.settled, at: undefined } : undefined
  for (let at = state.history.length - 1; at >= 0; at--) {
    const settled = state.history.at(at)?.settled?.get(callId)
    if (settled) return settled.settlement === 'unknown' ? { settled, at } : undefined
  }
  return undefined
}

/** What became of a call supersedes its unknown outcome, wherever that stands. */
export function reconciled(state: ThreadState, event: LogEvent<'tool.reconciled/1'>): ThreadState {
  const { call_id, part, reason } = event.data
  const found = unknownOutcome(state, call_id)
  if (!found) throw unfoldable(event, 'the call has no unknown outcome.')
  const settled = { ...found.settled, settlement: known(event, event.data.settlement), part, reason, time: event.time }
  const next = { ...state, batch: inBatch(state, call_id, found.settled, settled) }
  if (found.at === undefined) return next
  const entries = state.history.slice()
  entries[found.at] = inEntry(entries[found.at] as HistoryEntry, call_id, settled)
  return { ...next, history: AppendList.of(entries) }
}

function inBatch({ batch }: ThreadState, callId: string, before: SettledCall, settled: SettledCall): ThreadState['batch'] {
  const call = batch?.calls.get(callId)
  if (!batch || call?.settled !== before) return batch
  return { ...batch, calls: new Map(batch.calls).set(callId, { ...call, settled }) }
}

function inEntry(entry: HistoryEntry, callId: string, settled: SettledCall): HistoryEntry {
  const message = resolved(entry)
  const isIt = (part: JsonValue) => isJsonObject(part) && part['part_kind'] === 'tool-return' && part['tool_call_id'] === callId
  const template = Payload.of({
    ...(message as object),
    parts: partsOf(message).map((part) => (isIt(part) ? settled.part.value : part)),
  })
  return { ...entry, template, settled: new Map(entry.settled).set(callId, settled) }
}
