import type { LanguageModelV4Prompt } from '@ai-sdk/provider'

/** What a script may look at: the text of the latest user message, and how many responses have followed it. */
export function turnOf(prompt: LanguageModelV4Prompt): { text: string; step: number } {
  const last = prompt.findLastIndex((message) => message.role === 'user')
  const content = prompt[last]?.content ?? []
  const text = Array.isArray(content) ? content.map((part) => (part.type === 'text' ? part.text : '')).join('') : String(content)
  return { text, step: prompt.slice(last + 1).filter((message) => message.role === 'assistant').length }
}
