import { z } from 'zod'
import { canonicalJson, isThreadlogError, type JsonValue, jsonEqual, jsonParse, toJson } from '../base/index.ts'
import type { CapabilityEntry } from '../messages/index.ts'
import { stateError } from './run-errors.ts'

/** What a capability can do with its namespace; the last write wins, and each is written as an event when the run next commits. */
export interface CapabilityStore {
  read<T extends z.ZodType>(o: { id: string; version: string; schema: T }): z.output<T> | null
  write(o: { id: string; version: string; value: unknown; schema?: z.ZodType }): void
  delete(id: string): void
}

/**
 * The capability state of one run (state spec §6): namespaces with exact versions, replaced as a whole. A namespace nobody reads is never looked
 * at and survives.
 */
export class CapabilityStates implements CapabilityStore {
  readonly #entries: Map<string, CapabilityEntry>
  readonly #changed = new Set<string>()

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

  /** Replaces a namespace. An equal write changes nothing. @throws as {@link read}; `json_invalid` */
  write({ id, version, value, schema }: { id: string; version: string; value: unknown; schema?: z.ZodType }): void {
    checkNames(id, version)
    const data = ordered(toJson(schema ? fitting(id, schema, value) : value))
    const before = this.#entries.get(id)
    if (before?.version === version && jsonEqual(before.data, data)) return
    this.#entries.set(id, { version, data })
    this.#changed.add(id)
  }

  delete(id: string): void {
    if (this.#entries.delete(id)) this.#changed.add(id)
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

  /** What was written or deleted since the last call. */
  takeChanges(): { id: string; entry: CapabilityEntry | null }[] {
    const changes = [...this.#changed].map((id) => ({ id, entry: this.get(id) }))
    this.#changed.clear()
    return changes
  }
}

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
