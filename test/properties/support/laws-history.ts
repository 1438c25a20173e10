import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { type Message, toolCalls } from '../../../src/messages/index.ts'
import {
  decodeState,
  encodeState,
  evolve,
  foldStream,
  harnessState,
  messageHistory,
  stateHash,
} from '../../../src/projections/index.ts'
import type { Law } from './story.ts'

/** Calls are answered exactly once, by what follows them, before the model speaks again. Adjacent requests count as one. */
function* illegal(messages: readonly Message[], atRest: boolean): Iterable<string> {
  let open = new Map<string, string>()
  let before: Message | undefined
  for (const [i, message] of messages.entries()) {
    if (message.kind === 'response') {
      if (open.size > 0) yield `message ${i}: the model speaks with ${[...open.keys()].join(', ')} unanswered`
      if (before?.kind === 'response' && before.state !== 'suspended') yield `message ${i}: two responses in a row`
      open = new Map(toolCalls(message).map((call) => [call.tool_call_id, call.tool_name]))
    } else
      for (const part of message.parts) {
        if (part.part_kind !== 'tool-return') continue
        if (open.get(part.tool_call_id) !== part.tool_name)
          yield `message ${i}: a return of ${part.tool_call_id} without its call`
        open.delete(part.tool_call_id)
      }
    before = message
  }
  if (atRest && open.size > 0) yield `the thread rests with ${[...open.keys()].join(', ')} unanswered`
}

function* illegalPrompt(prompt: LanguageModelV4Prompt): Iterable<string> {
  let open = new Set<string>()
  let role = ''
  for (const message of prompt) {
    if (message.role !== 'tool' && open.size > 0)
      yield `prompt: a ${message.role} message before ${[...open].join(', ')} is answered`
    if (message.role === role && (role === 'user' || role === 'tool')) yield `prompt: two ${role} messages in a row`
    role = message.role
    if (message.role === 'assistant')
      open = new Set(message.content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])))
    if (message.role === 'tool')
      for (const part of message.content)
        if (part.type === 'tool-result' && !open.delete(part.toolCallId))
          yield `prompt: a result of ${part.toolCallId} without its call`
  }
  // A response that its provider paused is whole once it has gone on.
  if (open.size > 0 && role !== 'assistant') yield `prompt: it ends with ${[...open].join(', ')} unanswered`
  if (role === 'system' || role === '') yield 'prompt: it asks nothing'
}

export const historyIsLegal: Law = function* ({ world, end }) {
  for (const prompt of world.prompts) yield* illegalPrompt(prompt)
  yield* illegal(messageHistory(end), end.run === undefined)
  if (end.identity) harnessState(end)
}

export const everyPrefixFolds: Law = function* ({ world, folds, at, end, events }) {
  for (const { quarantine } of folds)
    if (quarantine) return yield `version ${quarantine.version} does not fold: ${quarantine.message}`
  const hash = stateHash(end)
  if (stateHash(foldStream(world.log.records).state) !== hash) yield 'folding the log again gives another state'
  for (const { state } of world.lived)
    if (stateHash(state) !== stateHash(at(state.version)))
      yield `the live state of version ${state.version} is not the fold of its events`
  const cut = world.trace.length % (events.length + 1)
  const resumed = events.slice(cut).reduce(evolve, decodeState(encodeState(at(cut))))
  if (stateHash(resumed) !== hash) yield `going on from a snapshot of version ${cut} gives another state`
}

export const partsAreVoid: Law = function* ({ world, commits }) {
  for (const { events } of commits) {
    const { id } = (events[0] as (typeof events)[0]).commit
    if (world.torn.includes(id)) yield `commit ${id} is accepted, though only a part of it was written`
    if (events.some((event) => event.commit.id !== id)) yield `commit ${id} is accepted in part`
  }
}

export const decisionsArePure: Law = function* ({ world }) {
  yield* world.impure
}
