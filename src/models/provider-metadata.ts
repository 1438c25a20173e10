import type { SharedV4ProviderMetadata, SharedV4ProviderOptions } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject, type JsonValue, toJson } from '../base/index.ts'
import { OPTIONS_NAMESPACE, OTHER_METADATA } from '../messages/index.ts'

/** What a part remembers of its provider. `signature` is a field of its own only in thinking parts. */
export interface Provenance {
  provider_name: string | null
  provider_details: JsonObject | null
}

/**
 * Metadata of a model part (`{provider: {...}}`) as part fields. The first provider gives its name; others are kept inside the details.
 * @throws ThreadlogError `json_invalid` if the metadata is not JSON
 */
export function readMetadata(metadata: SharedV4ProviderMetadata | SharedV4ProviderOptions | undefined): Provenance {
  const entries = Object.entries((toJson(metadata ?? {}) ?? {}) as Record<string, JsonObject>).filter(
    ([provider]) => provider !== OPTIONS_NAMESPACE,
  )
  const [first, ...others] = entries
  if (first === undefined) {
    const { details } = readMark(metadata as SharedV4ProviderOptions | undefined)
    return { provider_name: null, provider_details: isJsonObject(details) ? orNull(details) : null }
  }
  const details = { ...first[1], ...(others.length > 0 ? { [OTHER_METADATA]: Object.fromEntries(others) } : {}) }
  return { provider_name: first[0], provider_details: orNull(details) }
}

/** {@link readMetadata} for thinking: the signature becomes its own field. */
export function readThinkingMetadata(metadata: SharedV4ProviderMetadata | SharedV4ProviderOptions | undefined) {
  const { provider_name, provider_details } = readMetadata(metadata)
  if (typeof provider_details?.signature !== 'string') return { provider_name, provider_details, signature: null }
  const { signature, ...rest } = provider_details
  return { provider_name, provider_details: orNull(rest), signature: signature as string }
}

const orNull = (details: JsonObject): JsonObject | null => (Object.keys(details).length > 0 ? details : null)

/**
 * Part fields as options for the provider that made them. A part that does not record its provider speaks to `fallback`, if given; else
 * its details travel in our mark. `undefined` if there is nothing to say.
 */
export function writeOptions(
  part: Provenance & { signature?: string | null },
  o: { fallback?: string; mark?: JsonObject } = {},
): SharedV4ProviderOptions | undefined {
  const { [OTHER_METADATA]: others, ...rest } = part.provider_details ?? {}
  const details = { ...rest, ...(part.signature == null ? {} : { signature: part.signature }) }
  const isEmpty = Object.keys(details).length === 0
  const name = part.provider_name ?? (isEmpty ? undefined : o.fallback)
  const mark = { ...o.mark, ...(name === undefined && !isEmpty ? { details } : {}) }
  const options: Record<string, JsonObject> = {
    ...(name === undefined ? {} : { [name]: details }),
    ...(isJsonObject(others) ? (others as Record<string, JsonObject>) : {}),
    ...(Object.keys(mark).length === 0 ? {} : { [OPTIONS_NAMESPACE]: mark }),
  }
  return Object.keys(options).length > 0 ? options : undefined
}

/** Our mark on a prompt part, or `{}`. */
export function readMark(options: SharedV4ProviderOptions | undefined): JsonObject {
  const mark = options?.[OPTIONS_NAMESPACE] as JsonValue | undefined
  return isJsonObject(mark) ? mark : {}
}
