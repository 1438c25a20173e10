import {
  type Ids,
  isJsonObject,
  isThreadlogError,
  type JsonObject,
  type JsonValue,
  MAX_DOCUMENT_DEPTH,
  MAX_JSON_DEPTH,
  parseJson,
  reject,
  setOwn,
  systemClock,
  systemIds,
  toJson,
} from '../base/index.ts'
import { forkChildren } from './children.ts'
import { parseMessages } from './codec.ts'
import { inside, invalid, optional, type Reader, required, type Where } from './shape.ts'
import type { CapabilityEntry, EnvironmentState, StoredRef } from './state-shape.ts'
import * as shape from './state-shape.ts'
import { findNonFinite, stateText } from './state-text.ts'
import { checkThreadId } from './thread-id.ts'
import { isoTimestamp } from './timestamp.ts'
import type { Message } from './types.ts'

/** The parts of a state, by name. All but the thread id may be left out. */
export interface HarnessStateFields {
  threadId: string
  messageHistory?: readonly Message[]
  entries?: Readonly<Record<string, CapabilityEntry>>
  environmentStates?: Readonly<Record<string, EnvironmentState>>
  refs?: readonly StoredRef[]
  /** Top-level fields this version does not know: kept and written back. */
  unknownFields?: Readonly<JsonObject>
}

const KNOWN = new Set(['schema_version', 'thread_id', 'agent_context_state', 'refs', 'message_history', 'environment_states'])
const history: Reader<Message[]> = (value, at) => parseMessages(value, at)

/**
 * A thread as one value, wire-compatible with a13n-harness 0.21: it resumes there, and theirs resume here. Frozen; what goes in is
 * copied, and every accessor returns a fresh copy.
 */
export class HarnessState {
  readonly threadId: string
  readonly #json: JsonObject

  private constructor(json: JsonObject) {
    this.threadId = json.thread_id as string
    this.#json = json
    Object.freeze(this)
  }

  /**
   * Reads a state: text, UTF-8 bytes, or a JSON value. Unknown top-level fields are kept; unknown keys of entries, environments and
   * references are refused; those of messages and parts are dropped.
   * @param o.now ISO 8601 time for messages without one (now)
   * @throws ThreadlogError `state_invalid` with the path of the first fault
   */
  static parse(input: unknown, o: { now?: string } = {}): HarnessState {
    return new HarnessState(
      asStateError(() => readState(decode(input), { path: '$', now: o.now ?? isoTimestamp(systemClock.now()) })),
    )
  }

  /** A state from its parts, checked as {@link HarnessState.parse} does. @throws ThreadlogError `thread_id_invalid`, `state_invalid` */
  static of(fields: HarnessStateFields): HarnessState {
    return HarnessState.parse({
      ...fields.unknownFields,
      schema_version: '1',
      thread_id: checkThreadId(fields.threadId),
      agent_context_state: { entries: fields.entries ?? {} },
      refs: fields.refs ?? [],
      message_history: fields.messageHistory ?? [],
      environment_states: fields.environmentStates ?? {},
    })
  }

  /** The state of a new thread, with a generated id unless one is given. @throws ThreadlogError `thread_id_invalid` */
  static new(o: { threadId?: string; ids: Pick<Ids, 'thread'> }): HarnessState {
    return HarnessState.of({ threadId: o.threadId ?? o.ids.thread() })
  }

  /**
   * A copy under another thread id, to go on from the same history (state spec §1.6): messages with their open calls, capability state, references
   * and unknown fields are copied; environments are left behind; retained children get threads of their own.
   * @param o.threadId default: a new one
   * @throws ThreadlogError `thread_id_invalid`; `state_fork_same_thread`; `capability_state_version_unsupported`, `capability_state_invalid` for
   *   a registry of children that this version does not know
   */
  fork(o: { threadId?: string; ids?: Pick<Ids, 'thread'> } = {}): HarnessState {
    const { ids = systemIds } = o
    const threadId = checkThreadId(o.threadId ?? ids.thread())
    if (threadId === this.threadId)
      throw reject('state_fork_same_thread', 'A fork needs a thread id of its own.', { path: 'threadId' })
    const entries = forkChildren(this.entries, ids)
    const { schema_version, refs, message_history } = this.#json
    return new HarnessState(
      structuredClone({
        schema_version,
        thread_id: threadId,
        agent_context_state: { entries },
        refs,
        ...pickUnknown(this.#json),
        message_history,
        environment_states: {},
      }) as unknown as JsonObject,
    )
  }

  get messageHistory(): Message[] {
    return structuredClone(this.#json.message_history) as unknown as Message[]
  }

  /** Capability state by namespace. */
  get entries(): Record<string, CapabilityEntry> {
    return structuredClone(this.#entries)
  }

  /** One namespace, without copying the others. */
  entry(id: string): CapabilityEntry | undefined {
    return Object.hasOwn(this.#entries, id) ? structuredClone(this.#entries[id]) : undefined
  }

  get environmentStates(): Record<string, EnvironmentState> {
    return structuredClone(this.#json.environment_states) as unknown as Record<string, EnvironmentState>
  }

  get refs(): StoredRef[] {
    return structuredClone(this.#json.refs) as unknown as StoredRef[]
  }

  get unknownFields(): JsonObject {
    return structuredClone(pickUnknown(this.#json))
  }

  /** The wire value, keys in written order. */
  toJSON(): JsonObject {
    return structuredClone(this.#json)
  }

  /** The wire text, byte for byte as the other library writes it. */
  toText(): string {
    return stateText(this.#json)
  }

  get #entries(): Record<string, CapabilityEntry> {
    return (this.#json.agent_context_state as { entries: unknown }).entries as Record<string, CapabilityEntry>
  }
}

/** A state stands around values that may be as deep as JSON may be; a published record stands around a state. */
const MAX_DEPTH = MAX_DOCUMENT_DEPTH - 16

function decode(input: unknown): JsonValue {
  if (typeof input !== 'string' && !(input instanceof Uint8Array)) return toJson(input, '$', MAX_JSON_DEPTH - MAX_DEPTH)
  const text = typeof input === 'string' ? input : new TextDecoder().decode(input)
  try {
    return parseJson(input, { maxDepth: MAX_DEPTH })
  } catch (error) {
    const path = findNonFinite(text)
    throw path === undefined ? error : invalid({ path, now: '' }, 'a finite number')
  }
}

function readState(value: JsonValue, at: Where): JsonObject {
  if (!isJsonObject(value)) throw invalid(at, 'an object')
  const field = <T>(key: string, spec: { read: Reader<T>; otherwise?: (at: Where) => T }): JsonValue => {
    if (Object.hasOwn(value, key)) return spec.read(value[key]!, inside(at, key)) as JsonValue
    if (spec.otherwise === undefined) throw invalid(inside(at, key), 'a value: this key is required')
    return spec.otherwise(at) as JsonValue
  }
  // Checked in the order of the other library, so that the first fault named is the same one.
  const schema_version = field('schema_version', required(shape.schemaVersion))
  const thread_id = field('thread_id', required(shape.threadId))
  const message_history = field('message_history', optional(history, []))
  const agent_context_state = field('agent_context_state', optional(shape.agentContextState, { entries: {} }))
  const environment_states = field('environment_states', optional(shape.environmentStates, {}))
  const refs = field('refs', optional(shape.refs, []))
  return { schema_version, thread_id, agent_context_state, refs, ...pickUnknown(value), message_history, environment_states }
}

function pickUnknown(state: JsonObject): JsonObject {
  const out: JsonObject = {}
  for (const [key, value] of Object.entries(state)) if (!KNOWN.has(key)) setOwn(out, key, value)
  return out
}

function asStateError<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!isThreadlogError(error, 'message_history_invalid', 'json_invalid')) throw error
    throw reject('state_invalid', 'The harness state is not valid.', {
      path: error.path,
      expected: error.expected,
      hint: 'Send a state as exported, schema_version "1".',
      cause: error,
    })
  }
}
