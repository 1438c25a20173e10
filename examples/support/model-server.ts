import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ChatRequest, Conversation } from './conversation.ts'

/** What the model says: text, calls, or both; or an HTTP error. */
export type Reply = { text?: string; calls?: readonly { name: string; args: object }[] } | { status: number; message?: string }

/**
 * The scripted model. It answers by what the conversation holds, never by how often it was asked: after a crash the same request
 * comes again and must get the same answer.
 */
export type Script = (conversation: Conversation) => Reply

export interface ModelServer extends AsyncDisposable {
  /** Base URL, as in `OPENAI_BASE_URL`. */
  readonly url: string
  /** The requests so far, oldest first. */
  readonly requests: readonly ChatRequest[]
  close(): Promise<void>
}

/** Serves a script as an OpenAI-compatible `POST /v1/chat/completions`, streamed or whole, on a free port of this host. */
export async function startModelServer(script: Script): Promise<ModelServer> {
  const requests: ChatRequest[] = []
  const server = createServer((request, response) => {
    answer(request, response, script, requests).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1`, requests, close, [Symbol.asyncDispose]: close }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  script: Script,
  requests: ChatRequest[],
): Promise<void> {
  const body = await text(request)
  if (request.method !== 'POST' || request.url !== '/v1/chat/completions') return fail(response, 404, 'POST /v1/chat/completions')
  const chat = JSON.parse(body) as ChatRequest
  requests.push(chat)
  const reply = script(new Conversation(chat.messages))
  if ('status' in reply) return fail(response, reply.status, reply.message ?? 'scripted failure')
  const said = whole(chat, reply)
  if (!chat.stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said.completion))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  for (const chunk of said.chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  response.end('data: [DONE]\n\n')
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

function fail(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }))
}

/** One answer in both forms. Ids follow from the request, so that a repeated request gets the very same answer. */
function whole(chat: ChatRequest, { text: content = '', calls = [] }: Exclude<Reply, { status: number }>) {
  const digest = createHash('sha256').update(JSON.stringify(chat.messages)).digest('hex')
  const frame = { id: `chatcmpl-${digest.slice(0, 12)}`, created: 0, model: chat.model }
  const toolCalls = calls.map(({ name, args }, index) => ({
    id: `call_${digest.slice(0, 8)}_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }))
  const finish = toolCalls.length > 0 ? 'tool_calls' : 'stop'
  const usage = usageOf(JSON.stringify(chat.messages), content + JSON.stringify(calls))
  const message = { role: 'assistant', content, ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}) }
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...frame,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason }],
  })
  const chunks: object[] = [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(content, 12).map((piece) => chunk({ content: piece })),
    ...toolCalls.flatMap((call, index) => streamedCall(call, index).map((part) => chunk({ tool_calls: [part] }))),
    chunk({}, finish),
  ]
  if (chat.stream_options?.include_usage) chunks.push({ ...frame, object: 'chat.completion.chunk', choices: [], usage })
  const completion = { ...frame, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }], usage }
  return { chunks, completion }
}

/** As providers stream a call: id and name first, then its arguments in pieces. */
const streamedCall = (
  call: { id: string; type: string; function: { name: string; arguments: string } },
  index: number,
): object[] => [
  { index, id: call.id, type: call.type, function: { name: call.function.name, arguments: '' } },
  ...pieces(call.function.arguments, 10).map((piece) => ({ index, function: { arguments: piece } })),
]

const pieces = (value: string, size: number): string[] =>
  Array.from({ length: Math.ceil(value.length / size) }, (_, i) => value.slice(i * size, (i + 1) * size))

/** Four characters a token, as a rule of thumb. */
function usageOf(prompt: string, completion: string) {
  const prompt_tokens = Math.ceil(prompt.length / 4)
  const completion_tokens = Math.ceil(completion.length / 4)
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}
