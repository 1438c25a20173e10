import type { JsonObject, JsonValue } from '../base/index.ts'
import { decodeEnvelope } from '../events/index.ts'
import type { Position, RecordedEvent } from '../log/index.ts'
import { isoTime } from './format.ts'
import { fieldsJson, type PayloadForm } from './payloads.ts'

/** A place in the log; offsets as decimal text, since they may pass 2^53. */
export const positionJson = ({ partition, offset }: Position): JsonObject => ({ partition, offset: String(offset) })

/** One event as a record: place, envelope, fields. What cannot be read says why in `defect` and has no fields. */
export function eventJson(record: RecordedEvent, form: PayloadForm): JsonObject {
  const { version, hash, position, event, defect } = record
  if (!event) return { version, type: typeOf(record), time: null, position: positionJson(position), hash, defect: defect ?? null }
  const { type, time, commit, previous, actor, causation, run_id, attempt, data } = event
  return {
    version,
    type,
    time: isoTime(time),
    position: positionJson(position),
    hash,
    previous,
    commit: { ...commit },
    actor: { ...actor },
    causation: causation as JsonValue,
    run_id,
    attempt,
    fields: fieldsJson(data, form),
  }
}

/** The type of an event this build cannot decode, if at least its envelope can be read. */
export function typeOf({ event, bytes }: RecordedEvent): string | null {
  if (event) return event.type
  try {
    return decodeEnvelope(bytes).type
  } catch {
    return null
  }
}

/** `run.suspended` matches that type in any version, `tool` all types of that word. */
export function typeFilter(wanted: readonly string[] | undefined): (record: RecordedEvent) => boolean {
  if (!wanted || wanted.length === 0) return () => true
  return (record) => {
    const type = typeOf(record) ?? ''
    return wanted.some((name) => type === name || type.startsWith(`${name}/`) || type.startsWith(`${name}.`))
  }
}
