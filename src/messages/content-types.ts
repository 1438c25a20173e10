import type { JsonObject, JsonValue } from '../base/index.ts'

/** One item of a user prompt list; items other than text also occur inside tool-return content. */
export type UserContent = string | ContentItem
export type ContentItem = TextContentItem | UrlItem | BinaryItem | UploadedFileItem | CachePointItem

export interface TextContentItem {
  content: string
  metadata: JsonValue
  kind: 'text-content'
}

/**
 * `identifier`: the first six hex digits of the SHA-1 of the URL, unless given. `media_type` is guessed from the extension, unless
 * given; null when there is none.
 */
export interface UrlItem {
  url: string
  force_download: boolean | 'allow-local'
  vendor_metadata: JsonObject | null
  kind: 'image-url' | 'audio-url' | 'video-url' | 'document-url'
  media_type: string | null
  identifier: string
}

/** `data` is base64 in the URL-safe alphabet with padding. `identifier`: first six hex digits of the SHA-1 of the bytes, unless given. */
export interface BinaryItem {
  data: string
  media_type: string
  vendor_metadata: JsonObject | null
  kind: 'binary'
  identifier: string
}

export interface UploadedFileItem {
  file_id: string
  provider_name: string
  vendor_metadata: JsonObject | null
  kind: 'uploaded-file'
  media_type: string
  identifier: string
}

export interface CachePointItem {
  kind: 'cache-point'
  ttl: '5m' | '1h'
}
