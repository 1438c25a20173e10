import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, setOwn } from '../base/index.ts'
import { checkThreadId, HarnessState, type Message } from '../messages/index.ts'
import { messageHistory, messageText } from './messages.ts'
import type { ThreadState } from './state.ts'

/**
 * The thread as a HarnessState (design §8): what another process, or the original library, can go on from.
 * @throws ThreadlogError `thread_id_invalid` for a foreign session whose id no HarnessState can have; `state_invalid`
 */
export function harnessState(state: ThreadState): HarnessState {
  checkThreadId(state.identity?.thread ?? '')
  return HarnessState.parse(harnessStateJson(state))
}

/** The same as canonical JSON text, not checked: the form in which it is published. Messages are not parsed for it. */
export function harnessStateText(state: ThreadState): string {
  const { message_history: _, ...rest } = harnessStateJson(state, [])
  const fields = Object.keys({ ...rest, message_history: null }).sort()
  const written = fields.map(
    (name) => `${JSON.stringify(name)}:${name === 'message_history' ? historyText(state) : canonicalJson(rest[name] ?? null)}`,
  )
  return `{${written.join(',')}}`
}

const historyText = (state: ThreadState): string => `[${[...state.history].map(messageText).join(',')}]`

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
