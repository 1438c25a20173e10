/** A request as `POST /chat/completions` carries it; only what a script looks at. */
export interface ChatRequest {
  model: string
  stream?: boolean
  stream_options?: { include_usage?: boolean }
  messages: ChatMessage[]
  tools?: { type: 'function'; function: { name: string; description?: string; parameters?: object } }[]
}

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string | { type: string; text?: string }[] | null
  tool_calls?: { id: string; function: { name: string; arguments: string } }[]
  tool_call_id?: string
}

/** What a tool has returned: its text, and its value if the text is JSON. */
export interface Returned {
  text: string
  value: Record<string, unknown>
}

/** A conversation as the scripted model sees it. */
export class Conversation {
  readonly messages: readonly ChatMessage[]

  constructor(messages: readonly ChatMessage[]) {
    this.messages = messages
  }

  /** The latest words of the user. */
  get asked(): string {
    return textOf(this.messages.findLast((message) => message.role === 'user'))
  }

  /** What a tool has returned since then, if anything. */
  returned(tool: string): Returned | undefined {
    const turn = this.messages.slice(this.messages.findLastIndex((message) => message.role === 'user') + 1)
    const ids = turn
      .flatMap((message) => message.tool_calls ?? [])
      .flatMap((call) => (call.function.name === tool ? [call.id] : []))
    const found = turn.findLast((message) => message.role === 'tool' && ids.includes(message.tool_call_id ?? ''))
    if (!found) return undefined
    const text = textOf(found)
    return { text, value: objectIn(text) }
  }
}

function textOf(message: ChatMessage | undefined): string {
  const content = message?.content ?? ''
  return typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
