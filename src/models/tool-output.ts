import type { LanguageModelV4ToolResultOutput, LanguageModelV4ToolResultPart } from '@ai-sdk/provider'
import { canonicalJson, type JsonObject, type JsonValue } from '../base/index.ts'
import {
  type BuiltinToolReturnPart,
  type ContentItem,
  fileItem,
  OPTIONS_NAMESPACE,
  type ToolOutcome,
  type ToolReturnPart,
} from '../messages/index.ts'
import { fromFilePart, toFilePart } from './prompt-files.ts'
import { readMark } from './provider-metadata.ts'

type ContentOutput = Extract<LanguageModelV4ToolResultOutput, { type: 'content' }>['value'][number]

const asText = (value: JsonValue): string => (typeof value === 'string' ? value : canonicalJson(value))

/** A tool return as the result a model sees: files as files, a denial as a denial, the other three failures as errors. */
export function toOutput({
  outcome,
  content,
}: Pick<ToolReturnPart | BuiltinToolReturnPart, 'outcome' | 'content'>): LanguageModelV4ToolResultOutput {
  if (outcome === 'denied') return { type: 'execution-denied', reason: asText(content) }
  if (outcome !== 'success')
    return typeof content === 'string' ? { type: 'error-text', value: content } : { type: 'error-json', value: content }
  if (typeof content === 'string') return { type: 'text', value: content }
  const list = Array.isArray(content) ? content : [content]
  if (!list.some((item) => fileItem(item) !== undefined)) return { type: 'json', value: content }
  return { type: 'content', value: list.map(contentOutput) }
}

function contentOutput(value: JsonValue): ContentOutput {
  const item = fileItem(value)
  if (item === undefined) return { type: 'text', text: asText(value) }
  return toFilePart(item as Exclude<ContentItem, { kind: 'text-content' | 'cache-point' }>)
}

/** What a result alone does not say: which kind of failure, and content that a denial cannot hold. */
export function outputMark(
  part: Pick<ToolReturnPart, 'outcome' | 'content'> & { retry?: ToolReturnPart['retry'] },
): JsonObject | undefined {
  const mark: JsonObject = {}
  if (part.outcome === 'retried' || part.outcome === 'interrupted') mark.outcome = part.outcome
  if (part.retry != null) mark.retry = { ...part.retry }
  if (part.outcome === 'denied' && typeof part.content !== 'string') mark.content = part.content
  return Object.keys(mark).length > 0 ? mark : undefined
}

export interface ReadOutput {
  content: JsonValue
  outcome: ToolOutcome
  retry: JsonValue
}

/** The result of a prompt as fields of a tool return. */
export function fromOutput({
  output,
  providerOptions,
}: Pick<LanguageModelV4ToolResultPart, 'output' | 'providerOptions'>): ReadOutput {
  const mark = readMark(providerOptions)
  const retry = mark.retry ?? null
  switch (output.type) {
    case 'text':
    case 'json':
      return { content: output.value as JsonValue, outcome: 'success', retry }
    case 'execution-denied':
      return {
        content: mark.content === undefined ? (output.reason ?? 'Tool execution denied.') : mark.content,
        outcome: 'denied',
        retry,
      }
    case 'error-text':
    case 'error-json':
      return { content: output.value as JsonValue, outcome: (mark.outcome as ToolOutcome | undefined) ?? 'failed', retry }
    case 'content':
      return { content: output.value.map(readContent), outcome: 'success', retry }
  }
}

function readContent(item: ContentOutput): JsonValue {
  if (item.type === 'text') return item.text
  if (item.type === 'file') return fromFilePart(item)
  return { type: 'custom', provider_options: (item.providerOptions ?? null) as JsonValue }
}

export const markOptions = (mark: JsonObject | undefined) =>
  mark === undefined ? {} : { providerOptions: { [OPTIONS_NAMESPACE]: mark } }
