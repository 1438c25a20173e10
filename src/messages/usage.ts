import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../base/index.ts'
import { integer, invalid, mapOf, number, object, optional, orNull, type Reader } from './shape.ts'
import type { Usage } from './types.ts'

/** Usage in which nothing was counted. */
export const emptyUsage = (): Usage => usage({}, { path: '$', now: '' })

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/
const cost: Reader<string> = (value, at) => {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text !== 'string' || !DECIMAL.test(text)) throw invalid(at, 'a decimal as text, or null')
  return text
}

const counted = () => optional(integer, 0)
const details: Reader<{ [name: string]: number }> = (value, at) => (value === null ? {} : mapOf(integer)(value, at))

const shape = object<Usage>({
  input_tokens: optional(integer, 0, { alias: 'request_tokens' }),
  cache_write_tokens: counted(),
  cache_write_1h_tokens: counted(),
  cache_read_tokens: counted(),
  output_tokens: optional(integer, 0, { alias: 'response_tokens' }),
  unmeasured_requests: optional(integer, 0, { hideIf: 0 }),
  output_reasoning_tokens: counted(),
  input_audio_tokens: counted(),
  cache_audio_read_tokens: counted(),
  output_audio_tokens: counted(),
  audio_seconds: optional(number, 0),
  details: { read: details, otherwise: () => ({}) },
  cost: orNull(cost),
})

/** Names that older versions wrote and that are not kept. */
const LEGACY = new Set(['requests', 'request_tokens', 'response_tokens', 'total_tokens', 'unmeasured_requests'])

/** Usage with every key. Keys of other names are kept after the known ones: providers report what they like. */
export const usage: Reader<Usage> = (value, at) => {
  const known = shape(value, at)
  if (isJsonObject(value))
    for (const [key, item] of Object.entries(value))
      if (!Object.hasOwn(known, key) && !LEGACY.has(key)) setOwn(known as unknown as JsonObject, key, item as JsonValue)
  return known
}

/** Two usages together; costs are not added. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: JsonObject = { ...(a as unknown as JsonObject), cost: null }
  for (const [key, item] of Object.entries(b as unknown as JsonObject))
    if (typeof item === 'number') setOwn(sum, key, item + (typeof sum[key] === 'number' ? (sum[key] as number) : 0))
  return sum as unknown as Usage
}
