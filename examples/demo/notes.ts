import type { JsonObject, JsonValue, Payload } from '../../src/base/index.ts'
import type { LogEvent } from '../../src/events/index.ts'
import type { RecordedEvent } from '../../src/log/index.ts'

/** One line of a timeline. */
export interface TimelineEntry {
  version: number
  /** Epoch milliseconds. */
  time: number
  type: string
  note: string
  /** Events of one commit share it. */
  commit: string
}

export function timelineEntry({ version, event }: RecordedEvent): TimelineEntry {
  if (!event) return { version, time: 0, type: 'unreadable', note: '', commit: '' }
  return { version, time: event.time, type: event.type.replace(/\/\d+$/, ''), note: noteOf(event), commit: event.commit.id }
}

/** What an event says, in a few words. */
function noteOf(event: LogEvent): string {
  switch (event.type) {
    case 'thread.opened/1':
      return `${event.data.application_id} / ${event.data.user_id} / ${event.data.thread_id}`
    case 'run.requested/1':
      return quoted(event.data.input)
    case 'run.started/1':
      return event.data.trigger.kind === 'batch' ? 'resumes what waited' : `agent ${event.data.agent.name}`
    case 'run.recovered/1':
      return `attempt ${event.data.attempt}: ${event.data.why}`
    case 'run.suspended/1':
      return event.data.batch.map((item) => `${item.tool_name} waits for ${item.kind}`).join(', ')
    case 'run.completed/1':
      return quoted(event.data.output)
    case 'request.composed/1':
      return `step ${event.data.step}${event.data.state === 'interrupted' ? ', interrupted' : ''}`
    case 'model.responded/1':
      return parts(event.data.message).map(partNote).join(', ')
    case 'tool.dispatched/1':
      return `${bare(event.data.tool)}, run ${event.data.number}, key ${short(event.data.idempotency_key)}`
    case 'tool.settled/1':
      return `${event.data.settlement}${event.data.reason ? ` (${event.data.reason})` : ''}${settledNote(event.data.part)}`
    case 'continuation.suspended/1':
      return `${short(event.data.continuation_id)} for provider ${event.data.provider}`
    case 'continuation.completed/1':
      return `by ${event.actor.id || event.data.result_id}: ${text(event.data.value.value)}`
    default:
      return 'continuation_id' in event.data ? short(event.data.continuation_id) : ''
  }
}

const parts = (message: Payload): JsonObject[] => ((message.value as JsonObject)['parts'] ?? []) as JsonObject[]

function partNote(part: JsonObject): string {
  if (part['part_kind'] === 'tool-call') return `${part['tool_name']} ${text(argsOf(part))}`
  return part['part_kind'] === 'text' ? 'the answer' : String(part['part_kind'])
}

/** Arguments as an object: most models send them as text. */
const argsOf = ({ args = {} }: JsonObject): JsonValue =>
  typeof args === 'string' ? (JSON.parse(args || '{}') as JsonValue) : args

function settledNote(part: Payload): string {
  const value = part.value as JsonObject
  return '$completed' in value ? ` by ${short(String(value['$completed']))}` : ` ${text(value['content'] ?? null)}`
}

const bare = (tool: string): string => tool.replace(/^tool\/\w+\//, '')
const quoted = (payload: Payload | null): string => (payload ? `“${text(payload.value)}”` : '')

/** An id, as far as a person needs it. */
export const short = (id: string): string => `${id.slice(0, 8)}…`

/** A value without the quotes of JSON. */
export function text(value: JsonValue): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return `[${value.map(text).join(', ')}]`
  if (value === null || typeof value !== 'object') return String(value)
  return `{${Object.entries(value)
    .map(([key, item]) => `${key}: ${text(item as JsonValue)}`)
    .join(', ')}}`
}
