import type {
  LanguageModelV4Citation,
  LanguageModelV4Content,
  LanguageModelV4Source,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { type JsonValue, toJson } from '../base/index.ts'
import {
  type BinaryItem,
  builtinToolCallPart,
  builtinToolReturnPart,
  type Citation,
  CUSTOM_CONTENT,
  encodeBase64,
  filePart,
  parseArgs,
  REASONING_FILE,
  type ResponsePart,
  textPart,
  toolCallPart,
} from '../messages/index.ts'
import { StreamFault } from './failure.ts'
import { bytesOf } from './prompt-files.ts'
import { readMetadata } from './provider-metadata.ts'

const ATOMIC = ['tool-call', 'tool-result', 'file', 'reasoning-file', 'custom'] as const
/** Content that comes as one piece, in a stream and in a whole result alike. */
export type Atomic = Extract<LanguageModelV4Content, { type: (typeof ATOMIC)[number] }>
export const isAtomic = (part: LanguageModelV4StreamPart): part is Atomic => (ATOMIC as readonly string[]).includes(part.type)

/** The response part such content becomes. @throws StreamFault if a required field is missing or of another type */
export function readAtomic(part: Atomic, o: { now: string; callId: () => string }): ResponsePart {
  const provenance = readMetadata(part.providerMetadata)
  switch (part.type) {
    case 'tool-call': {
      if (typeof part.toolName !== 'string' || part.toolName === '') throw new StreamFault('call_without_name')
      if (typeof part.input !== 'string') throw new StreamFault('call_without_input')
      const tool_call_id = typeof part.toolCallId === 'string' && part.toolCallId !== '' ? part.toolCallId : o.callId()
      const call = { tool_name: part.toolName, tool_call_id, args: part.input, ...provenance }
      if (!part.providerExecuted) return toolCallPart(call)
      // Nobody validates a provider's own arguments, so they are kept as the object they are.
      const args = parseArgs(call)
      return builtinToolCallPart(args.ok ? { ...call, args: args.value } : call)
    }
    case 'tool-result':
      if (typeof part.toolName !== 'string' || typeof part.toolCallId !== 'string') throw new StreamFault('result_without_call')
      return builtinToolReturnPart({
        tool_name: part.toolName,
        tool_call_id: part.toolCallId,
        content: toJson(part.result ?? null),
        outcome: part.isError ? 'failed' : 'success',
        timestamp: o.now,
        ...provenance,
      })
    case 'file':
    case 'reasoning-file': {
      if (part.data?.type === 'url') return custom({ ...part, data: undefined, url: part.data.url.href })
      if (part.data?.type !== 'data' || typeof part.mediaType !== 'string') throw new StreamFault('file_without_data')
      const content = { kind: 'binary', data: encodeBase64(bytesOf(part.data.data)), media_type: part.mediaType } as BinaryItem
      const details =
        part.type === 'reasoning-file' ? { ...provenance.provider_details, [REASONING_FILE]: true } : provenance.provider_details
      return filePart({ content, ...provenance, provider_details: details })
    }
    case 'custom':
      return custom(part)
  }
}

/** Content without a part kind of its own: an empty text part that carries it, ready to be sent back as a prompt part. */
function custom({ providerMetadata, ...rest }: { providerMetadata?: unknown; [key: string]: unknown }): ResponsePart {
  const kept = toJson({ ...rest, providerOptions: providerMetadata })
  return textPart({ content: '', provider_details: { [CUSTOM_CONTENT]: kept as JsonValue } })
}

const webOrDocument = (source: LanguageModelV4Source, excerpts: string[]): Citation['sources'][number] =>
  source.sourceType === 'url'
    ? { url: source.url, title: source.title ?? null, excerpts, kind: 'web' }
    : { document_id: source.id, title: source.title, excerpts, kind: 'document' }

/** Citations of one text, as the provider anchors them. */
export const readCitations = (citations: LanguageModelV4Citation[]): Citation[] =>
  citations.map(({ source, startIndex, endIndex, citedText }) => ({
    sources: [webOrDocument(source, citedText === undefined ? [] : [citedText])],
    anchor: startIndex === undefined || endIndex === undefined ? null : { start: startIndex, end: endIndex, kind: 'content' },
  }))

/** A source the provider names apart from any text: cited by the text before it, without an anchor. */
export const readSource = (source: LanguageModelV4Source, cite: (citations: Citation[]) => void): void =>
  cite([{ sources: [webOrDocument(source, [])], anchor: null }])
