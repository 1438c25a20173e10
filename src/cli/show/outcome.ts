import { isJsonObject, type JsonValue, type Payload } from '../../base/index.ts'
import { type LogEvent, threadName } from '../../events/index.ts'
import { counted, sizeText } from '../format.ts'
import { type PayloadForm, payloadText, valueText } from '../payloads.ts'

/** Ids as they are shown beside others: enough of them to find the rest. */
export const shortId = (id: string): string => (id.startsWith('run-') ? id.slice(0, 12) : id.length > 16 ? id.slice(0, 12) : id)

/** Settlements of calls in the words of the wire form. */
export const settlementText = (settlement: string): string => (settlement === 'returned' ? 'success' : settlement)

const partsOf = (message: JsonValue): JsonValue[] =>
  isJsonObject(message) && Array.isArray(message['parts']) ? message['parts'] : []

const kindOf = (part: JsonValue): JsonValue | undefined => (isJsonObject(part) ? part['part_kind'] : undefined)

/** What a response is: `2 calls`, `text`, `nothing`. */
export function responseOutcome(message: Payload): string {
  const kinds = partsOf(message.value).map(kindOf)
  const calls = kinds.filter((kind) => kind === 'tool-call').length
  if (calls > 0) return counted(calls, 'call')
  return kinds.includes('text') ? 'text' : kinds.length === 0 ? 'nothing' : String(kinds[0])
}

/** Tokens of a response, if the provider told them. */
export function usageText(usage: Payload): string {
  const value = usage.value
  const count = (name: string) => (isJsonObject(value) && typeof value[name] === 'number' ? (value[name] as number) : 0)
  const [input, output] = [count('input_tokens'), count('output_tokens')]
  return input + output > 0 ? `${input} in, ${output} out` : ''
}

/** The texts of a message, without what stands around them. */
export function messageText(message: Payload, form: PayloadForm): string {
  if (form === 'none') return ''
  if (message.kept && form === 'preview') return payloadText(message, form)
  const texts = partsOf(message.value).flatMap((part) => {
    if (!isJsonObject(part) || kindOf(part) === 'system-prompt') return []
    if (kindOf(part) === 'tool-call') return [String(part['tool_name'])]
    if (typeof part['$settled'] === 'string') return [`return of ${part['$settled']}`]
    return typeof part['content'] === 'string' ? [part['content']] : []
  })
  return texts.length === 0 ? '' : valueText(texts.join(' | '), form)
}

/** What a settled call gave: a preview of its content, else its size. */
export function partText(part: Payload, form: PayloadForm): string {
  const size = sizeText(part.size)
  if (part.kept && form !== 'full') return size
  const value = part.value
  if (!isJsonObject(value)) return size
  if (typeof value['$completed'] === 'string') return `from wait ${shortId(value['$completed'])}`
  if (form === 'none' || value['content'] === undefined) return size
  return valueText(value['content'], form)
}

/** How an event came out, in a word or two; empty for one that has no outcome. */
export function outcomeOf(event: LogEvent): string {
  switch (event.type) {
    case 'thread.opened/1':
      return event.data.origin.kind
    case 'request.composed/1':
      return event.data.state === 'complete' ? '' : event.data.state
    case 'model.responded/1':
      return responseOutcome(event.data.message)
    case 'model.failed/2':
      return `failed: ${event.data.code}`
    case 'tool.settled/1':
    case 'tool.reconciled/1':
      return settlementText(event.data.settlement)
    case 'run.suspended/1':
      return counted(event.data.batch.length, 'wait')
    case 'run.completed/1':
    case 'continuation.completed/1':
      return 'completed'
    case 'run.failed/1':
    case 'continuation.failed/1':
      return `failed: ${event.data.failure.code}`
    case 'run.cancelled/1':
    case 'continuation.cancelled/1':
      return 'cancelled'
    case 'continuation.suspended/1':
      return 'pending'
    case 'continuation.extended/1':
      return 'extended'
    case 'continuation.leased/1':
      return event.data.until === null ? 'acknowledged' : 'leased'
    case 'continuation.expired/1':
      return 'expired'
    case 'continuation.abandoned/1':
      return 'abandoned'
    default:
      return ''
  }
}

const filled = (...texts: string[]): string => texts.filter((text) => text !== '').join(', ')

/** What else there is to say about an event, on one line. */
export function noteOf(event: LogEvent, form: PayloadForm): string {
  switch (event.type) {
    case 'thread.opened/1': {
      const { application_id: application, user_id: user, thread_id: thread, kind, origin } = event.data
      const { parent } = origin
      const lineage = parent ? `from ${parent.stream.slice(0, 12)} at ${parent.version}` : ''
      return filled(kind, threadName({ application, user, thread }), lineage)
    }
    case 'thread.repaired/1':
      return filled(`version ${event.data.version}`, event.data.reason)
    case 'run.requested/1':
      return filled(`agent ${event.data.agent}`, event.data.input ? payloadText(event.data.input, form) : '')
    case 'run.started/1': {
      const { agent, attempt, owner, trigger } = event.data
      return filled(`agent ${agent.name}@${agent.revision}`, `attempt ${attempt}`, owner.kind, trigger.kind)
    }
    case 'run.recovered/1':
      return filled(`attempt ${event.data.attempt}`, event.data.owner.kind, event.data.why)
    case 'request.composed/1':
      return filled(`step ${event.data.step}`, messageText(event.data.message, form))
    case 'model.requested/1':
      return filled(`step ${event.data.step}`, event.data.model)
    case 'model.responded/1':
      return filled(`step ${event.data.step}`, usageText(event.data.usage), messageText(event.data.message, form))
    case 'model.failed/2':
      return filled(`step ${event.data.step}`, event.data.retryable ? 'retryable' : '')
    case 'history.revised/1':
      return filled(event.data.why, payloadText(event.data.patch, form))
    case 'tool.dispatched/1':
      return filled(
        event.data.tool,
        event.data.number > 1 ? `dispatch ${event.data.number}` : '',
        event.data.changed_proposal ? 'defined anew since it was approved' : '',
      )
    case 'tool.settled/1':
      return filled(event.data.reason ?? '', partText(event.data.part, form))
    case 'run.suspended/1':
      return event.data.batch.map((item) => `${item.kind} ${item.tool_name}`).join(', ')
    case 'run.completed/1':
      return payloadText(event.data.output, form)
    case 'run.failed/1':
      return event.data.failure.message
    case 'run.cancelled/1':
    case 'run.cancel-requested/1':
      return event.data.reason
    case 'continuation.suspended/1':
      return filled(event.data.provider, event.data.schema_id)
    case 'continuation.completed/1':
      return filled(by(event), payloadText(event.data.value, form))
    case 'continuation.failed/1':
      return filled(by(event), event.data.failure.retryable ? 'retryable' : '')
    case 'capability.written/1':
      return filled(`version ${event.data.version}`, payloadText(event.data.data, form))
    default:
      return ''
  }
}

const by = ({ actor }: LogEvent): string => (actor.id === '' ? `by ${actor.kind}` : `by ${actor.kind} ${actor.id}`)

/** The event in a word, with the id it is about. */
export function whatOf(event: LogEvent): string {
  const name = event.type.slice(0, event.type.indexOf('/'))
  const { data } = event
  const id =
    'call_id' in data
      ? data.call_id
      : 'continuation_id' in data
        ? shortId(data.continuation_id)
        : 'capability_id' in data
          ? data.capability_id
          : 'run_id' in data
            ? shortId(data.run_id)
            : ''
  return id === '' ? name : `${name} ${id}`
}
