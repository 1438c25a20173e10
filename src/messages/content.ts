import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../base/index.ts'
import type {
  BinaryItem,
  CachePointItem,
  ContentItem,
  TextContentItem,
  UploadedFileItem,
  UrlItem,
  UserContent,
} from './content-types.ts'
import { guessMediaType, isYoutube } from './media-type.ts'
import {
  byKind,
  constant,
  inside,
  invalid,
  json,
  jsonObject,
  nullable,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  required,
  string,
  type Where,
} from './shape.ts'

/** First six hex digits of the SHA-1: how the model may refer to an item. Not a security measure. */
export const contentIdentifier = (data: string | Uint8Array): string => hash('sha1', data, 'hex').slice(0, 6)

const URL_SAFE = /^[A-Za-z0-9_-]*={0,2}$/
const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/

/** Bytes of base64 text in either alphabet, padded or not; `undefined` if the text is not base64. */
export function decodeBase64(text: string): Buffer | undefined {
  if (!URL_SAFE.test(text) && !STANDARD.test(text)) return undefined
  const padding = text.length - text.replace(/=+$/, '').length
  if ((text.length - padding) % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined
  return Buffer.from(text, 'base64')
}

/** Base64 in the URL-safe alphabet with padding: the written form of bytes. */
export const encodeBase64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64').replaceAll('+', '-').replaceAll('/', '_')

/** What an item of this kind becomes when `identifier` or `media_type` was not given. */
const derived = (value: JsonValue): string | null => (typeof value === 'string' && value !== '' ? value : null)

const textContent = object<TextContentItem>({
  content: required(string),
  metadata: optional(json, null),
  kind: constant('text-content'),
})

const cachePoint = object<CachePointItem>({ kind: constant('cache-point'), ttl: optional(oneOf('5m', '1h'), '5m') })

function urlItem(kind: UrlItem['kind']): Reader<UrlItem> {
  const shape = object<UrlItem>({
    url: required(string),
    force_download: optional(oneOf<boolean | 'allow-local'>(true, false, 'allow-local'), false),
    vendor_metadata: orNull(jsonObject),
    kind: constant(kind),
    media_type: orNull(string),
    identifier: optional(nullable(string) as Reader<string>, ''),
  })
  return (value, at) => {
    const item = shape(value, at)
    item.media_type =
      derived(item.media_type) ?? (kind === 'video-url' && isYoutube(item.url) ? 'video/mp4' : guessMediaType(item.url))
    item.identifier = derived(item.identifier) ?? contentIdentifier(item.url)
    return item
  }
}

const binaryShape = object<BinaryItem>({
  data: required(string),
  media_type: required(string),
  vendor_metadata: orNull(jsonObject),
  kind: constant('binary'),
  identifier: optional(nullable(string) as Reader<string>, ''),
})

export const binary: Reader<BinaryItem> = (value, at) => {
  const item = binaryShape(value, at)
  const bytes = decodeBase64(item.data)
  if (bytes === undefined) throw invalid(inside(at, 'data'), 'base64')
  item.data = encodeBase64(bytes)
  item.identifier = derived(item.identifier) ?? contentIdentifier(bytes)
  return item
}

const uploadedShape = object<UploadedFileItem>({
  file_id: required(string),
  provider_name: required(string),
  vendor_metadata: orNull(jsonObject),
  kind: constant('uploaded-file'),
  media_type: optional(nullable(string) as Reader<string>, ''),
  identifier: optional(nullable(string) as Reader<string>, ''),
})

const uploadedFile: Reader<UploadedFileItem> = (value, at) => {
  const item = uploadedShape(value, at)
  item.media_type = derived(item.media_type) ?? guessMediaType(item.file_id) ?? 'application/octet-stream'
  item.identifier = derived(item.identifier) ?? contentIdentifier(item.file_id)
  return item
}

const FILES: { [kind: string]: Reader<ContentItem> } = {
  'image-url': urlItem('image-url'),
  'audio-url': urlItem('audio-url'),
  'video-url': urlItem('video-url'),
  'document-url': urlItem('document-url'),
  binary,
  'uploaded-file': uploadedFile,
}

export const contentItem = byKind<ContentItem>('kind', {
  'text-content': textContent,
  'cache-point': cachePoint,
  ...FILES,
})

export const userContent: Reader<string | UserContent[]> = (value, at) => {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) throw invalid(at, 'a string or a list of content items')
  return value.map((item, i) => (typeof item === 'string' ? item : contentItem(item, inside(at, i))))
}

/**
 * Content of a tool return: any JSON, in which complete file items get their written form. An object that only looks like one (a URL
 * without `media_type`, data that is not base64) is data of the tool and stays as it is.
 */
export const returnContent: Reader<JsonValue> = (value, at) => {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((item) => returnContent(item, at))
  const item = fileItem(value, at)
  if (item !== undefined) return item as unknown as JsonObject
  const out: JsonObject = {}
  for (const [key, nested] of Object.entries(value)) setOwn(out, key, returnContent(nested, at))
  return out
}

/** The written form of a complete file item inside other JSON, or `undefined`. */
export function fileItem(value: JsonValue, at: Where = { path: '$', now: '' }): ContentItem | undefined {
  if (!isJsonObject(value) || typeof value.kind !== 'string' || !Object.hasOwn(FILES, value.kind)) return undefined
  if (value.kind.endsWith('-url') && (!Object.hasOwn(value, 'media_type') || value.media_type === '')) return undefined
  try {
    return FILES[value.kind]!(value, at)
  } catch {
    return undefined
  }
}
