import type { LanguageModelV4Message } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject } from '../base/index.ts'
import {
  type BuiltinToolCallPart,
  CUSTOM_CONTENT,
  INVALID_JSON,
  parseArgs,
  REASONING_FILE,
  type ResponseMessage,
  type ResponsePart,
  type ToolCallPart,
} from '../messages/index.ts'
import { standardBase64, toFilePart } from './prompt-files.ts'
import { type Provenance, writeOptions } from './provider-metadata.ts'
import { outputMark, toOutput } from './tool-output.ts'

export type AssistantPart = Extract<LanguageModelV4Message, { role: 'assistant' }>['content'][number]

/** A response as assistant content. Parts that hold nothing a model could use are left out: providers refuse empty text. */
export const toAssistantContent = (response: ResponseMessage, o: { provider?: string } = {}): AssistantPart[] =>
  response.parts.flatMap((part) => assistantPart(part, o.provider))

function assistantPart(part: ResponsePart, fallback: string | undefined): AssistantPart[] {
  switch (part.part_kind) {
    case 'text': {
      const custom = part.provider_details?.[CUSTOM_CONTENT]
      if (isJsonObject(custom)) return [readCustom(custom)]
      return isEmpty(part) ? [] : [{ type: 'text', text: part.content, ...some(writeOptions(part)) }]
    }
    case 'thinking': {
      if (isEmpty(part) && part.signature === null) return []
      return [{ type: 'reasoning', text: part.content, ...some(writeOptions(part, { fallback })) }]
    }
    case 'tool-call':
      return [callPart(part)]
    case 'builtin-tool-call':
      return [{ ...callPart(part), providerExecuted: true }]
    case 'builtin-tool-return':
      return [
        {
          type: 'tool-result',
          toolCallId: part.tool_call_id,
          toolName: part.tool_name,
          output: toOutput(part),
          ...some(writeOptions(part, { mark: outputMark(part) })),
        },
      ]
    case 'file':
      return [filePart(part.content, part)]
    case 'compaction':
      return compactionPart(part)
    case 'speech': {
      const mark = { part: part as unknown as JsonObject }
      if (part.transcript !== null) return [{ type: 'text', text: part.transcript, ...some(writeOptions(part, { mark })) }]
      return part.audio === null ? [] : [{ ...toFilePart(part.audio), ...some(writeOptions(part, { mark })) } as AssistantPart]
    }
  }
}

const some = <T>(providerOptions: T | undefined) => (providerOptions === undefined ? {} : { providerOptions })
const isEmpty = (part: Provenance & { content: string }) =>
  part.content === '' && Object.keys(part.provider_details ?? {}).length === 0

function callPart(part: ToolCallPart | BuiltinToolCallPart): Extract<AssistantPart, { type: 'tool-call' }> {
  const args = parseArgs(part)
  const input = args.ok ? args.value : { [INVALID_JSON]: part.args as string }
  return { type: 'tool-call', toolCallId: part.tool_call_id, toolName: part.tool_name, input, ...some(writeOptions(part)) }
}

function filePart(content: Extract<ResponsePart, { part_kind: 'file' }>['content'], part: Provenance): AssistantPart {
  const { [REASONING_FILE]: reasoning, ...details } = part.provider_details ?? {}
  const file = {
    data: { type: 'data' as const, data: standardBase64(content) },
    mediaType: content.media_type,
    ...some(writeOptions({ ...part, provider_details: details })),
  }
  return reasoning === true ? { type: 'reasoning-file', ...file } : { type: 'file', ...file }
}

function compactionPart(part: Extract<ResponsePart, { part_kind: 'compaction' }>): AssistantPart[] {
  const mark = { part: part as unknown as JsonObject }
  if (part.provider_name !== null)
    return [{ type: 'custom', kind: `${part.provider_name}.compaction`, ...some(writeOptions(part, { mark })) }]
  return part.content === null ? [] : [{ type: 'text', text: part.content, ...some(writeOptions(part, { mark })) }]
}

/** Model content without a part kind of its own, as it came (see the assembler). */
function readCustom(custom: JsonObject): AssistantPart {
  const { url, ...rest } = custom
  const data =
    typeof url === 'string' && URL.canParse(url) ? { data: { type: 'url' as const, url: new URL(url), originalUrl: url } } : {}
  return { ...rest, ...data } as unknown as AssistantPart
}
