import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, setOwn } from '../base/index.ts'
import { checkThreadId, HarnessState, type Message } from '../messages/index.ts'
import { messageHistory } from './messages.ts'
import type { ThreadState } from './state.ts'

/**
 * The thread as a HarnessState (design §8): what another process, or the original library, can go on from.
 * @throws ThreadlogError `thread_id_invalid` for a foreign session whose id no HarnessState can have; `state_invalid`
 */
export function harnessState(state: ThreadState): HarnessState {
  checkThreadId(state.identity?.thread ?? '')
  return HarnessState.parse(harnessStateJson(state))
}

/** What stands before and behind the messages in the canonical JSON text of {@link harnessStateJson}. */
export function aroundMessages(state: ThreadState): { before: string; behind: string } {
  const { message_history, ...rest } = harnessStateJson(state, [])
  const names = Object.keys(rest).sort()
  const split = names.filter((name) => name < 'message_history').length
  const field = (name: string) => `${JSON.stringify(name)}:${canonicalJson(rest[name] ?? null)}`
  const before = names.slice(0, split).map((name) => `${field(name)},`)
  const behind = names.slice(split).map((name) => `,${field(name)}`)
  return { before: `{${before.join('')}"message_history":[`, behind: `]${behind.join('')}}` }
}

/** The same as plain JSON, not checked. Shared: read only. */
export function harnessStateJson(state: ThreadState, messages: readonly Message[] = messageHistory(state)): JsonObject {
  const rest = isJsonObject(state.imported?.value) ? state.imported.value : {}
  const { environment_states, refs, ...unknown } = rest as JsonObject
  const entries: JsonObject = {}
  for (const [id, { version, data }] of state.capabilities) setOwn(entries, id, { version, data: data.value })
  return {
    schema_version: '1',
    thread_id: state.identity?.thread ?? '',
    agent_context_state: { entries },
    refs: refs ?? [],
    ...unknown,
    message_history: messages as unknown as JsonValue,
    environment_states: environment_states ?? {},
  }
}
