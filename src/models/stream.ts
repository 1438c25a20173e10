import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { type Ids, isA, isThreadlogError, type JsonObject, systemIds, toJson } from '../base/index.ts'
import {
  dropBrokenNativePairs,
  type FinishReason,
  type Message,
  type ResponseMessage,
  type ResponsePart,
  type ResponseState,
  responseMessage,
  toolCalls,
  type Usage,
} from '../messages/index.ts'
import { Assembler, type Delta } from './assembler.ts'
import { brokenStream, describeFailure, endedStream, type Failure, StreamFault } from './failure.ts'
import { toModelMessages } from './to-prompt.ts'
import { toUsage } from './usage.ts'

/** A tool as a model sees it. `inputSchema` is JSON Schema. */
export interface ToolSpec {
  name: string
  description?: string
  inputSchema: JsonObject
  strict?: boolean
}

/** Settings of one request that are passed on as they are. */
export type ModelSettings = Pick<
  LanguageModelV4CallOptions,
  | 'maxOutputTokens'
  | 'temperature'
  | 'stopSequences'
  | 'topP'
  | 'topK'
  | 'presencePenalty'
  | 'frequencyPenalty'
  | 'seed'
  | 'toolChoice'
  | 'reasoning'
  | 'headers'
  | 'providerOptions'
>

export interface StreamRequest {
  model: LanguageModelV4
  messages: readonly Message[]
  tools: readonly ToolSpec[]
  /** Structured output by JSON response format. */
  responseFormat?: LanguageModelV4CallOptions['responseFormat']
  settings?: ModelSettings
  signal?: AbortSignal
  /** ISO 8601 timestamp. */
  now(): string
  /** Source of ids for calls that came without one. */
  ids?: Pick<Ids, 'token'>
  /** Recorded on the response as `run_id` and `conversation_id`. */
  runId?: string
  threadId?: string
  /** Called for each piece as it arrives. What it throws ends the request as failed. */
  onDelta?(delta: Delta): void
}

/**
 * What became of one model request. `partial` is what may be kept of a cut response: state interrupted, already filtered (state spec
 * §5.2 A and B); absent if nothing may.
 */
export type ModelOutcome =
  | { kind: 'response'; message: ResponseMessage; usage: Usage }
  | ({ kind: 'failed'; partial?: ResponseMessage } & Failure)
  | { kind: 'cancelled'; partial?: ResponseMessage }

/**
 * Asks a model and assembles its streamed answer. Never throws for what the model, its provider or the network do: that is an outcome.
 * An abort wins over whatever error the provider makes of it; a response that was finished before stays a response.
 */
export async function streamResponse(request: StreamRequest): Promise<ModelOutcome> {
  const { signal } = request
  const ids = request.ids ?? systemIds
  const paused = request.messages.at(-1)
  const taken = paused?.kind === 'response' ? toolCalls(paused).map((call) => call.tool_call_id) : []
  const assembler = new Assembler({ now: request.now(), callId: () => `call_${ids.token()}`, taken })
  if (signal?.aborted) return { kind: 'cancelled' }
  try {
    await consume(request, assembler)
  } catch (error) {
    // After `finish` the response is whole, whatever becomes of the connection.
    if (assembler.finish === undefined || isA(error, StreamFault)) return cut(request, assembler, error)
  }
  try {
    return finished(request, assembler)
  } catch (error) {
    return cut(request, assembler, error)
  }
}

function cut(request: StreamRequest, assembler: Assembler, error: unknown): ModelOutcome {
  const partial = partialResponse(request, assembler)
  const kept = partial === undefined ? {} : { partial }
  return request.signal?.aborted ? { kind: 'cancelled', ...kept } : { kind: 'failed', ...failureOf(error, request), ...kept }
}

function failureOf(error: unknown, request: StreamRequest): Failure {
  if (isA(error, StreamEnded)) return endedStream()
  // A message part the codec refuses, or metadata that is not JSON: the model's answer, not the request, is at fault.
  if (isThreadlogError(error, 'message_history_invalid', 'json_invalid')) return brokenStream(error.code)
  return describeFailure(error, Date.parse(request.now()))
}

class StreamEnded extends Error {}

/** Parts that are already there come without a turn of the event loop: nobody else would run, and no abort would arrive. */
const TURN_MS = 10

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function consume(request: StreamRequest, assembler: Assembler): Promise<void> {
  const { signal } = request
  const reader = (await opened(request)).getReader()
  const cancel = () => void reader.cancel().catch(() => {})
  signal?.addEventListener('abort', cancel, { once: true })
  let whole = false
  try {
    if (signal?.aborted) throw new Aborted()
    let turn = performance.now()
    while (true) {
      if (performance.now() - turn > TURN_MS) {
        await nextTurn()
        turn = performance.now()
      }
      // Cancelling ends a read that is waiting, whatever the model does about it.
      const { done, value } = await reader.read()
      if (signal?.aborted) throw new Aborted()
      whole = done
      if (done) break
      if (typeof value !== 'object' || value === null) throw new StreamFault('part_without_type')
      const delta = assembler.add(value)
      if (delta !== undefined) request.onDelta?.(delta)
    }
    if (assembler.finish === undefined) throw new StreamEnded()
  } finally {
    signal?.removeEventListener('abort', cancel)
    if (!whole) cancel()
  }
}

class Aborted extends Error {}

/** The stream of the answer, unless the abort comes first: a model that ignores the signal must not hold us. */
function opened(request: StreamRequest): Promise<ReadableStream<LanguageModelV4StreamPart>> {
  const { signal } = request
  return new Promise((resolve, fail) => {
    const abort = () => fail(new Aborted())
    signal?.addEventListener('abort', abort, { once: true })
    Promise.resolve(request.model.doStream(callOptions(request)))
      .then(({ stream }) => {
        resolve(stream)
        // One that is handed over after the abort has nobody to read it.
        if (signal?.aborted) stream.cancel().catch(() => {})
      })
      .catch(fail)
      .finally(() => signal?.removeEventListener('abort', abort))
  })
}

function callOptions(request: StreamRequest): LanguageModelV4CallOptions {
  const { model, tools, responseFormat, settings, signal } = request
  return {
    ...settings,
    prompt: toModelMessages(request.messages, { provider: model.provider.split('.')[0] }),
    ...(responseFormat === undefined ? {} : { responseFormat }),
    ...(signal === undefined ? {} : { abortSignal: signal }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, inputSchema, strict }) => ({
            type: 'function',
            name,
            description,
            inputSchema,
            strict,
          })),
        }),
  }
}

const REASONS: Record<string, FinishReason | undefined> = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_call',
  error: 'error',
}
/** Raw finish reasons by which a provider asks for its response back. */
const PAUSES = new Set(['pause_turn'])

function finished(request: StreamRequest, assembler: Assembler): ModelOutcome {
  const { unified, raw } = assembler.finish!.reason
  if (unified === 'interrupted') {
    const partial = partialResponse(request, assembler)
    return partial === undefined
      ? { kind: 'failed', ...endedStream() }
      : { kind: 'response', message: partial, usage: partial.usage }
  }
  if (unified === 'error') {
    const partial = partialResponse(request, assembler)
    const failure: Failure = { code: 'model_request_failed', retryable: true, details: { error_type: 'finish_error' } }
    return { kind: 'failed', ...failure, ...(partial === undefined ? {} : { partial }) }
  }
  const state = raw !== undefined && PAUSES.has(raw) ? 'suspended' : 'complete'
  const message = envelope(request, assembler, assembler.parts(), state)
  return { kind: 'response', message, usage: message.usage }
}

function partialResponse(request: StreamRequest, assembler: Assembler): ResponseMessage | undefined {
  try {
    const parts = dropBrokenNativePairs(assembler.partialParts())
    return parts.length === 0 ? undefined : envelope(request, assembler, parts, 'interrupted')
  } catch {
    // Metadata that is not JSON: nothing of such a response may be replayed.
    return undefined
  }
}

function envelope(request: StreamRequest, assembler: Assembler, parts: ResponsePart[], state: ResponseState): ResponseMessage {
  const { finish } = assembler
  const details = toJson({ finish_reason: finish?.reason.raw, ...finish?.metadata }) as JsonObject
  return responseMessage({
    parts,
    usage: toUsage(finish?.usage),
    model_name: assembler.modelId ?? request.model.modelId,
    timestamp: request.now(),
    provider_name: request.model.provider || null,
    provider_details: Object.keys(details).length > 0 ? details : null,
    provider_response_id: assembler.responseId ?? null,
    finish_reason: (state === 'interrupted' ? undefined : REASONS[finish?.reason.unified ?? '']) ?? null,
    run_id: request.runId ?? null,
    conversation_id: request.threadId ?? null,
    state,
  })
}
