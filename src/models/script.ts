import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { JsonObject, JsonValue } from '../base/index.ts'

/** One thing a scripted model says. `args_text` is raw text, also text that is not JSON. */
export type ScriptPart =
  | { text: string }
  | { thinking: string; signature?: string }
  | { tool_call: { id: string; name: string; args?: JsonObject; args_text?: string } }
  | { native_call: { id: string; name: string; args?: JsonObject; args_text?: string } }
  | { native_return: { id: string; name: string; content: JsonValue } }

/**
 * One model request. Parts are streamed in order; each ends when the next begins or the stream ends normally. `disconnect` breaks the
 * connection after the last part without ending it; `hang` waits for an abort; `fail_before` fails before any output.
 */
export interface ScriptEntry {
  parts: readonly ScriptPart[]
  then?: 'disconnect' | 'hang'
  fail_before?: boolean
  /** Tokens to report; 0 unless given. */
  usage?: { input?: number; output?: number }
}

export interface ScriptedOptions {
  /** `scripted` unless given. */
  modelId?: string
  /** `scripted` unless given; empty for none. */
  provider?: string
  /** Provider namespace of signatures and provider-executed calls: the provider unless given. */
  namespace?: string
  /** `stop` or `tool-calls`, by content, unless given. */
  finishReason?: LanguageModelV4FinishReason['unified']
  /** Milliseconds to wait before each part (0). */
  delayMs?: number
}

/** The connection broke: what a network failure looks like to a caller. */
export class ScriptedDisconnect extends Error {
  override readonly name = 'ScriptedDisconnect'
  readonly code = 'ECONNRESET'
  constructor() {
    super('The scripted model broke the connection.')
  }
}

const argsText = (call: { args?: JsonObject; args_text?: string }): string => call.args_text ?? JSON.stringify(call.args ?? {})

export const usageOf = (entry: ScriptEntry): LanguageModelV4Usage => ({
  inputTokens: { total: entry.usage?.input ?? 0, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: entry.usage?.output ?? 0, text: undefined, reasoning: undefined },
})

export const finishReasonOf = (entry: ScriptEntry, o: ScriptedOptions): LanguageModelV4FinishReason => ({
  unified: o.finishReason ?? (entry.parts.some((part) => 'tool_call' in part) ? 'tool-calls' : 'stop'),
  raw: undefined,
})

/** What a part emits when it begins, and what when it ends. */
export function streamPart(
  part: ScriptPart,
  id: string,
  namespace: string,
): { begin: LanguageModelV4StreamPart[]; end: LanguageModelV4StreamPart[] } {
  if ('text' in part)
    return {
      begin: [
        { type: 'text-start', id },
        { type: 'text-delta', id, delta: part.text },
      ],
      end: [{ type: 'text-end', id }],
    }
  if ('thinking' in part) {
    const signed = part.signature === undefined ? {} : { providerMetadata: { [namespace]: { signature: part.signature } } }
    return {
      begin: [
        { type: 'reasoning-start', id },
        { type: 'reasoning-delta', id, delta: part.thinking, ...signed },
      ],
      end: [{ type: 'reasoning-end', id }],
    }
  }
  if ('native_return' in part) {
    const { id: toolCallId, name: toolName, content } = part.native_return
    const result = content as NonNullable<JsonValue>
    return { begin: [{ type: 'tool-result', toolCallId, toolName, result, providerMetadata: { [namespace]: {} } }], end: [] }
  }
  const native = 'native_call' in part
  const call = native ? part.native_call : part.tool_call
  const shared = native ? { providerExecuted: true, providerMetadata: { [namespace]: {} } } : {}
  const input = argsText(call)
  return {
    begin: [
      { type: 'tool-input-start', id: call.id, toolName: call.name, ...shared },
      { type: 'tool-input-delta', id: call.id, delta: input },
    ],
    end: [
      { type: 'tool-input-end', id: call.id },
      { type: 'tool-call', toolCallId: call.id, toolName: call.name, input, ...shared },
    ],
  }
}
