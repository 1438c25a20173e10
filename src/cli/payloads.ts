import { canonicalJson, type JsonObject, type JsonValue, Payload, setOwn } from '../base/index.ts'
import { shorten, visible } from './visible.ts'

/** How much of what agents, tools and people wrote is shown. */
export type PayloadForm = 'none' | 'preview' | 'full'

/** Characters of a preview. */
export const PREVIEW = 120

/** A payload in JSON output: its value, or what stands for it: `{"$payload": {size, digest, preview}}`. */
export function payloadJson(payload: Payload, form: PayloadForm): JsonValue {
  if (form === 'full') return payload.value
  const { digest } = payload
  const facts: JsonObject = { size: payload.size, digest }
  return { $payload: form === 'preview' ? { ...facts, preview: previewText(payload) } : facts }
}

/** A payload as one visible line: strings as they are, anything else as JSON. Empty in form `none`. */
export function payloadText(payload: Payload, form: PayloadForm): string {
  if (form === 'none') return ''
  return form === 'full' ? visible(textOf(payload.value)) : previewText(payload)
}

/** As {@link payloadText}, for a JSON value. */
export const valueText = (value: JsonValue, form: PayloadForm): string => payloadText(Payload.of(value), form)

/** What is kept elsewhere is not loaded for its first words. */
const previewText = (payload: Payload): string =>
  payload.kept ? `(${payload.size} bytes in the content store)` : visible(shorten(textOf(payload.value), PREVIEW))

const textOf = (value: JsonValue): string => (typeof value === 'string' ? value : canonicalJson(value))

/** The fields of an event as JSON, payloads as `form` says. */
export function fieldsJson(data: unknown, form: PayloadForm): JsonValue {
  if (data instanceof Payload) return payloadJson(data, form)
  if (Array.isArray(data)) return data.map((item) => fieldsJson(item, form))
  if (typeof data !== 'object' || data === null) return data as JsonValue
  const out: JsonObject = {}
  for (const [name, value] of Object.entries(data)) setOwn(out, name, fieldsJson(value, form))
  return out
}
