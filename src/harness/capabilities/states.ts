import { z } from 'zod'
import { canonicalJson, isThreadlogError, type JsonValue, jsonEqual, jsonParse, Payload, toJson } from '../../base/index.ts'
import type { EventDraft } from '../../events/index.ts'
import type { CapabilityEntry } from '../../messages/index.ts'
import { PAYLOAD_LIMIT } from '../drafts.ts'
import { stateError } from '../run-errors.ts'
import type { CapabilityStore } from '../tool.ts'

/**
 * The capability state of one run (state spec §6): namespaces with exact versions, replaced as a whole. A namespace nobody reads is never looked
 * at and survives.
 */
export class CapabilityStates implements CapabilityStore {
  readonly #entries: Map<string, CapabilityEntry>
  /** What is not in the log yet, by namespace. */
  readonly #pending = new Map<string, EventDraft>()

  constructor(entries: Readonly<Record<string, CapabilityEntry>> = {}) {
    this.#entries = new Map(Object.entries(structuredClone(entries)))
  }

  /**
   * One namespace, detached, with the defaults of its schema; null if there is none.
   * @throws ThreadlogError of kind `StateError`: `capability_state_id_invalid`, `capability_state_version_invalid`,
   *   `capability_state_version_unsupported`, `capability_state_invalid`
   */
  read<T extends z.ZodType>({ id, version, schema }: { id: string; version: string; schema: T }): z.output<T> | null {
    checkNames(id, version)
    const entry = this.#entries.get(id)
    if (!entry) return null
    if (entry.version !== version)
      throw stateError('capability_state_version_unsupported', 'The capability state has another version.', {
        details: { capability_id: id, expected_version: version, actual_version: entry.version },
      })
    const read = z.safeParse(schema, structuredClone(entry.data))
    if (read.success) return read.data
    throw stateError('capability_state_invalid', 'The capability state does not fit its schema.', {
      details: { capability_id: id },
    })
  }

  /** Replaces a namespace. An equal write changes nothing. @throws as {@link read}; `json_invalid`, `capability_state_too_large` */
  write({ id, version, value, schema }: { id: string; version: string; value: unknown; schema?: z.ZodType }): void {
    checkNames(id, version)
    if (id.startsWith(RESERVED))
      throw stateError('capability_state_id_invalid', 'That namespace belongs to threadlog.', { path: 'id' })
    const data = ordered(toJson(schema ? fitting(id, schema, value) : value))
    const before = this.#entries.get(id)
    if (before?.version === version && jsonEqual(before.data, data)) return
    const payload = Payload.of(data)
    if (payload.bytes.byteLength > PAYLOAD_LIMIT)
      throw stateError('capability_state_too_large', 'The capability state is too large to be recorded.', {
        expected: `at most ${PAYLOAD_LIMIT} bytes of canonical JSON`,
        details: { capability_id: id },
      })
    this.#entries.set(id, { version, data })
    this.#pending.set(id, { type: 'capability.written/1', data: { capability_id: id, version, data: payload } })
  }

  delete(id: string): void {
    if (this.#entries.delete(id)) this.#pending.set(id, { type: 'capability.deleted/1', data: { capability_id: id } })
  }

  /** One entry, without the others; null if there is none. Any key is legal here. */
  get(id: string): CapabilityEntry | null {
    const entry = this.#entries.get(id)
    return entry ? structuredClone(entry) : null
  }

  /** All namespaces, detached. */
  snapshot(): Record<string, CapabilityEntry> {
    return structuredClone(Object.fromEntries(this.#entries))
  }

  /** The events of what was written or deleted and is not accepted yet. */
  drafts(): EventDraft[] {
    return [...this.#pending.values()]
  }

  /** Says that these are in the log; what was written meanwhile is still to come. */
  accepted(drafts: readonly EventDraft[]): void {
    for (const [id, draft] of this.#pending) if (drafts.includes(draft)) this.#pending.delete(id)
  }
}

/** Namespaces that are made from the log. */
export const RESERVED = 'threadlog.'

const ordered = (value: JsonValue): JsonValue => jsonParse(canonicalJson(value)) as JsonValue

function checkNames(id: string, version: string): void {
  if (typeof id !== 'string' || id.trim() === '')
    throw stateError('capability_state_id_invalid', 'A capability id is blank.', { path: 'id' })
  if (typeof version !== 'string' || version.trim() === '')
    throw stateError('capability_state_version_invalid', 'A capability version is blank.', {
      path: 'version',
      details: { capability_id: id },
    })
}

function fitting(id: string, schema: z.ZodType, value: unknown): unknown {
  try {
    return z.parse(schema, value)
  } catch (error) {
    if (isThreadlogError(error)) throw error
    throw stateError('capability_state_invalid', 'The value does not fit the schema of the capability.', {
      details: { capability_id: id },
    })
  }
}
