import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'

/** One request of the provider's client. */
export interface ChatCall {
  /** The latest words of the user: which of a test's threads is asking. */
  readonly asked: string
  /** Number of this request among those with the same words, from 0. */
  readonly nth: number
  readonly messages: readonly { role: string; content?: unknown; tool_call_id?: string; tool_calls?: { id: string }[] }[]
  readonly response: ServerResponse
}

/** What a server does with a request, byte for byte. */
export type Behaviour = (call: ChatCall) => void | Promise<void>

export interface RawChatServer extends AsyncDisposable {
  readonly calls: readonly ChatCall[]
  /** Requests by the words that were asked. */
  count(asked: string): number
  model: ReturnType<ReturnType<typeof createOpenAICompatible>>
  close(): Promise<void>
}

/** An HTTP server that does to a real provider client whatever a test wants done. */
export async function startRawChatServer(behave: Behaviour): Promise<RawChatServer> {
  const calls: ChatCall[] = []
  const count = (asked: string) => calls.filter((call) => call.asked === asked).length
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as Pick<ChatCall, 'messages'>
    const asked = lastWords(messages.findLast(({ role }) => role === 'user')?.content)
    const call = { asked, nth: count(asked), messages, response }
    calls.push(call)
    response.on('error', () => {})
    await behave(call)
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const model = createOpenAICompatible({ name: 'raw', baseURL, apiKey: 'none', includeUsage: true })('raw-model')
  return { calls, count, model, close, [Symbol.asyncDispose]: close }
}

/** Messages of the user without an answer between them are sent as one, in several parts. */
const lastWords = (content: unknown): string =>
  Array.isArray(content) ? String((content.at(-1) as { text?: unknown }).text) : String(content ?? '')

const frame = (delta: object, finish_reason: string | null = null) => ({
  ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'raw-model' },
  choices: [{ index: 0, delta, finish_reason }],
})

/** Lines of a stream. */
export const line = (value: unknown): string => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`
export const textLine = (content: string): string => line(frame({ content }))
export const callLine = (index: number, part: { id?: string; name?: string; arguments?: string }): string => {
  const { id, ...fn } = part
  return line(frame({ tool_calls: [{ index, ...(id ? { id, type: 'function' } : {}), function: fn }] }))
}
export const endLines = (reason = 'stop'): string => line(frame({}, reason)) + line('[DONE]')

/** Begins an answer that streams. */
export function stream(response: ServerResponse, ...lines: string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  more(response, ...lines)
}

/** Goes on with it. */
export function more(response: ServerResponse, ...lines: string[]): void {
  for (const text of lines) response.write(text)
}

/** A whole, well-formed answer of text. */
export function say(response: ServerResponse, text: string): void {
  stream(response, textLine(text), endLines())
  response.end()
}

/** An answer in one piece. */
export function answer(response: ServerResponse, status: number, headers: Record<string, string>, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}
