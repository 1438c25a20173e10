import type { LanguageModelV4FilePart, LanguageModelV4TextPart, SharedV4FileData } from '@ai-sdk/provider'
import type { JsonObject, JsonValue } from '../base/index.ts'
import {
  type BinaryItem,
  type ContentItem,
  decodeBase64,
  encodeBase64,
  OPTIONS_NAMESPACE,
  type UrlItem,
} from '../messages/index.ts'
import { readMark } from './provider-metadata.ts'

type Item = Exclude<ContentItem, { kind: 'text-content' | 'cache-point' }>
type FileData = Pick<LanguageModelV4FilePart, 'data' | 'mediaType'>

const FAMILY: Record<UrlItem['kind'], string> = {
  'image-url': 'image',
  'audio-url': 'audio',
  'video-url': 'video',
  'document-url': 'application/octet-stream',
}

/** Standard base64 of a binary item, as models expect it. */
export const standardBase64 = (item: BinaryItem): string => (decodeBase64(item.data) ?? Buffer.alloc(0)).toString('base64')

function fileData(item: Item): FileData | undefined {
  switch (item.kind) {
    case 'binary':
      return { data: { type: 'data', data: standardBase64(item) }, mediaType: item.media_type }
    case 'uploaded-file':
      return { data: { type: 'reference', reference: { [item.provider_name]: item.file_id } }, mediaType: item.media_type }
    default:
      if (!URL.canParse(item.url)) return undefined
      return {
        data: { type: 'url', url: new URL(item.url), originalUrl: item.url },
        mediaType: item.media_type ?? FAMILY[item.kind],
      }
  }
}

/** A file item as a prompt part; a URL that is none becomes text. */
export function toFilePart(item: Item): LanguageModelV4FilePart | LanguageModelV4TextPart {
  const file = fileData(item)
  if (file === undefined) return { type: 'text', text: (item as UrlItem).url }
  const mark: JsonObject = {}
  if (item.vendor_metadata !== null) mark.vendor_metadata = item.vendor_metadata
  if ('force_download' in item && item.force_download !== false) mark.force_download = item.force_download
  return { type: 'file', ...file, ...(Object.keys(mark).length > 0 ? { providerOptions: { [OPTIONS_NAMESPACE]: mark } } : {}) }
}

/** A prompt file as content: an item in its readable form (the message codec completes it), or text. */
export function fromFilePart(part: {
  data: SharedV4FileData
  mediaType: string
  providerOptions?: LanguageModelV4FilePart['providerOptions']
}): JsonValue {
  const { data, mediaType: media_type } = part
  const { vendor_metadata = null, force_download = false } = readMark(part.providerOptions)
  switch (data.type) {
    case 'data':
      return { kind: 'binary', data: encodeBase64(bytesOf(data.data)), media_type, vendor_metadata }
    case 'url':
      return { kind: urlKind(media_type), url: data.originalUrl ?? data.url.href, media_type, vendor_metadata, force_download }
    case 'reference': {
      const [provider_name = '', file_id = ''] = Object.entries(data.reference)[0] ?? []
      return { kind: 'uploaded-file', file_id, provider_name, media_type, vendor_metadata }
    }
    case 'text':
      return data.text
  }
}

/** Bytes of model file data: bytes, base64 text, or a data URL. */
export const bytesOf = (data: Uint8Array | string): Uint8Array =>
  typeof data === 'string' ? (decodeBase64(data.replace(/^data:[^,]*;base64,/, '')) ?? new Uint8Array()) : data

function urlKind(mediaType: string): UrlItem['kind'] {
  const family = mediaType.split('/')[0]
  return family === 'image' || family === 'audio' || family === 'video' ? `${family}-url` : 'document-url'
}
