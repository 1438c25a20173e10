import fc from 'fast-check'
import { canonicalJson, type JsonObject, type JsonValue } from '../../src/base/index.ts'

const sorted = (value: unknown): JsonValue => JSON.parse(canonicalJson(JSON.parse(JSON.stringify(value)))) as JsonValue
/** Integers beyond 2^53 are refused at every border and have their own tests. */
const isExact = (value: unknown): boolean => {
  if (typeof value === 'number') return Number.isSafeInteger(value) || !Number.isInteger(value)
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact)
}

/** Any JSON with sorted keys, so that canonical JSON keeps its order. */
export const json: fc.Arbitrary<JsonValue> = fc.jsonValue({ maxDepth: 3 }).filter(isExact).map(sorted)

const name = fc.string({ minLength: 1, maxLength: 8 })
const time = fc.integer({ min: 0, max: 4e12 }).map((ms) => new Date(ms).toISOString())
const record: fc.Arbitrary<JsonObject> = fc.dictionary(name, json, { maxKeys: 3 }).map((value) => sorted(value) as JsonObject)
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(of, { nil: null })
const base64 = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64'))

/** An object with the required keys and any subset of the optional ones. */
function draft(required: Record<string, fc.Arbitrary<unknown>>, optional: Record<string, fc.Arbitrary<unknown>> = {}) {
  return fc.record({ ...required, ...optional }, { requiredKeys: Object.keys(required) }) as unknown as fc.Arbitrary<JsonObject>
}
const kind = (part_kind: string) => ({ part_kind: fc.constant(part_kind) })

const provider = { provider_name: maybe(name), provider_details: maybe(record) }
const binary = draft(
  { kind: fc.constant('binary'), data: base64, media_type: name },
  { identifier: name, vendor_metadata: maybe(record) },
)
const url = draft(
  { kind: fc.constantFrom('image-url', 'audio-url', 'video-url', 'document-url'), url: fc.webUrl() },
  { force_download: fc.constantFrom(true, false, 'allow-local'), media_type: maybe(name), identifier: name },
)
const item = fc.oneof(
  fc.string(),
  binary,
  url,
  draft({ kind: fc.constant('text-content'), content: fc.string() }, { metadata: json }),
  draft({ kind: fc.constant('cache-point') }, { ttl: fc.constantFrom('5m', '1h') }),
  draft({ kind: fc.constant('uploaded-file'), file_id: name, provider_name: name }, { media_type: name }),
)
const outcome = fc.constantFrom('success', 'failed', 'denied', 'interrupted', 'retried')
const call = { args: fc.oneof(maybe(record), fc.string()), tool_call_id: name, ...provider }
const returned = { tool_call_id: name, metadata: json, timestamp: time, outcome }

export const requestPart: fc.Arbitrary<JsonObject> = fc.oneof(
  draft({ ...kind('system-prompt'), content: fc.string() }, { timestamp: time, metadata: maybe(record) }),
  draft({ ...kind('user-prompt'), content: fc.oneof(fc.string(), fc.array(item, { maxLength: 4 })) }, { timestamp: time }),
  draft(
    {
      ...kind('tool-return'),
      tool_name: name,
      content: fc.oneof(json, fc.array(fc.oneof(json, binary, url), { maxLength: 3 }).map(sorted)),
    },
    returned,
  ),
  draft({
    ...kind('retry-feedback'),
    content: fc.string(),
    retry: draft({ cause: fc.constant('no_output') }, { attempt: fc.nat() }),
  }),
  draft(
    { ...kind('retry-prompt'), content: fc.oneof(fc.string(), fc.array(record, { maxLength: 2 })) },
    { tool_name: maybe(name), timestamp: time },
  ),
  draft({ ...kind('speech'), speaker: fc.constant('user') }, { audio: maybe(binary), transcript: maybe(fc.string()) }),
  draft(kind('tool-availability-delta'), { tools_added: fc.array(name), tool_call_id: maybe(name) }),
  draft({ ...kind('instruction-delta'), id: fc.constantFrom('agent', 'run:x', 'other'), content: maybe(fc.string()) }),
)

export const responsePart: fc.Arbitrary<JsonObject> = fc.oneof(
  draft({ ...kind('text'), content: fc.string() }, { id: maybe(name), ...provider }),
  draft({ ...kind('thinking'), content: fc.string() }, { signature: maybe(fc.string()), ...provider }),
  draft({ ...kind('tool-call'), tool_name: name }, call),
  draft({ ...kind('builtin-tool-call'), tool_name: name }, call),
  draft({ ...kind('builtin-tool-return'), tool_name: name, content: json }, { ...returned, ...provider }),
  draft(kind('compaction'), { content: maybe(fc.string()), ...provider }),
  draft({ ...kind('file'), content: binary }, { id: maybe(name) }),
)

const parts = (of: fc.Arbitrary<JsonObject>) => fc.array(of, { maxLength: 4 })
const message: fc.Arbitrary<JsonObject> = fc.oneof(
  draft(
    { kind: fc.constant('request'), parts: parts(requestPart) },
    { timestamp: maybe(time), metadata: maybe(record), state: fc.constantFrom('complete', 'interrupted') },
  ),
  draft(
    { kind: fc.constant('response'), parts: parts(responsePart) },
    {
      timestamp: time,
      usage: draft(
        {},
        { input_tokens: fc.nat(), audio_seconds: fc.double({ min: 0, max: 1e6, noNaN: true }), details: fc.constant({ a: 1 }) },
      ),
      state: fc.constantFrom('complete', 'incomplete', 'suspended', 'interrupted'),
      finish_reason: maybe(fc.constantFrom('stop', 'length', 'content_filter', 'tool_call', 'error')),
      metadata: maybe(record),
    },
  ),
)

/** Message histories as others might send them: keys left out, older forms, any nesting. */
export const history: fc.Arbitrary<JsonObject[]> = fc.array(message, { maxLength: 5 })

const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,6}$/)
const threadId = fc.oneof(fc.stringMatching(/^[a-z][a-z0-9]{0,4}_[a-z0-9]{1,6}$/), fc.stringMatching(/^thread-[0-9a-f]{32}$/))
const known = ['schema_version', 'thread_id', 'agent_context_state', 'refs', 'message_history', 'environment_states']

/** Whole states as others might send them, fields left out or unknown. */
export const state: fc.Arbitrary<JsonObject> = fc
  .tuple(
    draft(
      { schema_version: fc.constant('1'), thread_id: threadId },
      {
        message_history: history,
        agent_context_state: draft(
          {},
          {
            entries: fc.dictionary(
              fc.string({ minLength: 1, maxLength: 8 }).filter((key) => key.trim() !== ''),
              fc.record({ version: name, data: json }),
              { maxKeys: 3 },
            ),
          },
        ),
        environment_states: fc.dictionary(
          name,
          fc.record({ provider_key: word, state_version: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,5}$/), state: json }),
          { maxKeys: 2 },
        ),
        refs: fc.array(fc.record({ key: name, digest: fc.stringMatching(/^[0-9a-f]{64}$/), size: fc.nat() }), { maxLength: 2 }),
      },
    ),
    fc.dictionary(
      name.filter((key) => !known.includes(key)),
      json,
      { maxKeys: 2 },
    ),
  )
  .map(([fields, unknown]) => ({ ...unknown, ...fields }))
