import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
import { type ResponsePart, textPart, thinkingPart } from '../messages/index.ts'
import { type Atomic, isAtomic, readAtomic, readCitations, readSource } from './content-parts.ts'
import { StreamFault } from './failure.ts'
import { readMetadata, readThinkingMetadata } from './provider-metadata.ts'

/** A piece of a response as it streams in, for whoever watches. */
export type Delta =
  | { type: 'text'; index: number; text: string }
  | { type: 'thinking'; index: number; text: string }
  | { type: 'tool-call'; index: number; callId: string; toolName: string; argsText: string; ended: boolean }

type Part<K extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: K }>

interface Block {
  kind: 'text' | 'thinking' | 'input' | 'atomic'
  ended: boolean
  text: string
  metadata: SharedV4ProviderMetadata
  /** Complete parts as they came; text and thinking are built at the end. */
  part?: ResponsePart
  citations?: ReturnType<typeof readCitations>
  toolName?: string
}

export interface Finish {
  reason: LanguageModelV4FinishReason
  usage: LanguageModelV4Usage | undefined
  metadata: SharedV4ProviderMetadata | undefined
}

/** Characters of a response, and a few for each part: a stream without an end must not take all memory. */
const MOST_CHARACTERS = 16 * 1024 * 1024
const PER_PART = 64

/**
 * Builds response parts from stream parts, in order of their first appearance. Knows for each part whether it ended: only that, not its
 * text, says whether it may be replayed. A call has ended at `tool-call`; its arguments are kept as text.
 * @throws StreamFault from `add`, for anything out of order; what was assembled before stays available
 */
export class Assembler {
  readonly #blocks: Block[] = []
  readonly #open = new Map<string, number>()
  readonly #callIds: Set<string>
  readonly #o: { now: string; callId: () => string }
  #characters = 0
  finish: Finish | undefined
  responseId: string | undefined
  modelId: string | undefined

  /** @param o.taken ids of calls of the response that this one goes on from */
  constructor(o: { now: string; callId: () => string; taken?: Iterable<string> }) {
    this.#o = o
    this.#callIds = new Set(o.taken)
  }

  add(part: LanguageModelV4StreamPart): Delta | undefined {
    if (part.type === 'raw' || part.type === 'ping' || part.type === 'stream-start') return undefined
    if (this.finish !== undefined) throw new StreamFault('part_after_finish')
    switch (part.type) {
      case 'response-metadata':
        if (typeof part.id === 'string') this.responseId = part.id
        if (typeof part.modelId === 'string') this.modelId = part.modelId
        return undefined
      case 'text-start':
      case 'reasoning-start':
        this.#start(part.type === 'text-start' ? 'text' : 'thinking', part)
        return undefined
      case 'text-delta':
        return this.#append('text', part)
      case 'reasoning-delta':
        return this.#append('thinking', part)
      case 'text-end':
      case 'reasoning-end':
        this.#end(part.type === 'text-end' ? 'text' : 'thinking', part)
        return undefined
      case 'tool-input-start':
        this.#start('input', part).block.toolName = part.toolName
        return undefined
      case 'tool-input-delta':
        return this.#appendInput(part)
      case 'tool-input-end':
        if (!this.#callIds.has(part.id)) this.#find('input', part.id)
        return undefined
      case 'finish':
        if (typeof part.finishReason?.unified !== 'string') throw new StreamFault('finish_without_reason')
        this.finish = { reason: part.finishReason, usage: part.usage, metadata: part.providerMetadata }
        return undefined
      case 'source':
        readSource(part, this.#lastText())
        return undefined
      case 'error':
        throw part.error
      default:
        if (isAtomic(part)) return this.#atomic(part)
        throw new StreamFault('unsupported_part')
    }
  }

  /** Parts of a stream that finished: what was still open when it did has ended with it. */
  parts(): ResponsePart[] {
    const cut = ['length', 'content-filter', 'error', 'interrupted'].includes(this.finish?.reason.unified ?? '')
    if (!cut && this.#blocks.some((block) => block.kind === 'input')) throw new StreamFault('call_without_end')
    return this.#blocks.flatMap((block) => (block.kind === 'input' ? [] : [build(block)]))
  }

  /** Parts of a stream that was cut (state spec §5.2 A): any text, ended thinking, ended calls, native returns. */
  partialParts(): ResponsePart[] {
    return this.#blocks
      .filter((block) => (block.kind === 'text' ? block.text !== '' : block.ended))
      .map(build)
      .filter((part) => part.part_kind !== 'file' && part.part_kind !== 'compaction' && !isEmptyThinking(part))
  }

  #key = (kind: Block['kind'], id: string): string => `${kind}:${id}`

  #start(kind: Block['kind'], { id, providerMetadata }: { id: string; providerMetadata?: SharedV4ProviderMetadata }) {
    if (this.#open.has(this.#key(kind, id))) throw new StreamFault('part_started_twice')
    const index = this.#push({ kind, ended: false, text: '', metadata: { ...providerMetadata } })
    this.#open.set(this.#key(kind, id), index)
    return { index, block: this.#blocks[index]! }
  }

  #grow(characters: number): void {
    this.#characters += characters
    if (this.#characters > MOST_CHARACTERS) throw new StreamFault('response_too_large')
  }

  #push(block: Block): number {
    this.#grow(PER_PART)
    return this.#blocks.push(block) - 1
  }

  #find(kind: Block['kind'], id: string): { index: number; block: Block } {
    const index = this.#open.get(this.#key(kind, id))
    if (index === undefined) throw new StreamFault('part_not_started')
    return { index, block: this.#blocks[index]! }
  }

  #append(kind: 'text' | 'thinking', part: Part<'text-delta'> | Part<'reasoning-delta'>): Delta | undefined {
    if (typeof part.delta !== 'string') throw new StreamFault('delta_without_text')
    // Text that arrived counts even where its start did not (state spec §5.2 A); the stream is faulty all the same.
    if (kind === 'text' && !this.#open.has(this.#key(kind, part.id)))
      this.#push({ kind, ended: false, text: part.delta, metadata: {} })
    const { index, block } = this.#find(kind, part.id)
    this.#grow(part.delta.length)
    block.text += part.delta
    mergeMetadata(block, part.providerMetadata)
    return part.delta === '' ? undefined : { type: kind, index, text: part.delta }
  }

  #appendInput(part: Part<'tool-input-delta'>): Delta {
    const { index, block } = this.#find('input', part.id)
    if (typeof part.delta !== 'string') throw new StreamFault('delta_without_text')
    this.#grow(part.delta.length)
    return { type: 'tool-call', index, callId: part.id, toolName: block.toolName ?? '', argsText: part.delta, ended: false }
  }

  #end(kind: 'text' | 'thinking', part: Part<'text-end'> | Part<'reasoning-end'>): void {
    const { block } = this.#find(kind, part.id)
    this.#open.delete(this.#key(kind, part.id))
    block.ended = true
    mergeMetadata(block, part.providerMetadata)
    if (part.type === 'text-end' && 'citations' in part && part.citations !== undefined)
      block.citations = readCitations(part.citations)
  }

  #atomic(part: Atomic): Delta | undefined {
    if (part.type === 'tool-result' && part.preliminary === true) return undefined
    const read = readAtomic(part, this.#o)
    const block: Block = { kind: 'atomic', ended: true, text: '', metadata: {}, part: read }
    if (part.type !== 'tool-call' || (read.part_kind !== 'tool-call' && read.part_kind !== 'builtin-tool-call')) {
      this.#push(block)
      return undefined
    }
    if (this.#callIds.has(read.tool_call_id)) throw new StreamFault('duplicate_call_id')
    this.#callIds.add(read.tool_call_id)
    const begun = this.#open.get(this.#key('input', part.toolCallId))
    if (begun !== undefined) this.#open.delete(this.#key('input', part.toolCallId))
    const index = begun ?? this.#push(block)
    this.#blocks[index] = block
    return { type: 'tool-call', index, callId: read.tool_call_id, toolName: read.tool_name, argsText: part.input, ended: true }
  }

  #lastText(): (citations: NonNullable<Block['citations']>) => void {
    const block = this.#blocks.findLast((b) => b.kind === 'text')
    return (citations) => {
      if (block !== undefined) block.citations = [...(block.citations ?? []), ...citations]
    }
  }
}

function mergeMetadata(block: Block, metadata: SharedV4ProviderMetadata | undefined): void {
  for (const [provider, fields] of Object.entries(metadata ?? {}))
    block.metadata[provider] = { ...block.metadata[provider], ...fields }
}

function build(block: Block): ResponsePart {
  if (block.part !== undefined) return block.part
  if (block.kind === 'thinking') return thinkingPart({ content: block.text, ...readThinkingMetadata(block.metadata) })
  return textPart({ content: block.text, citations: block.citations ?? null, ...readMetadata(block.metadata) })
}

const isEmptyThinking = (part: ResponsePart): boolean =>
  part.part_kind === 'thinking' && part.content === '' && part.signature === null && part.provider_details === null
