import { canonicalJson, type JsonValue } from '../../../src/base/index.ts'
import { findWait, messageHistory, type ThreadState, type Wait } from '../../../src/projections/index.ts'
import type { Law } from './story.ts'

export const commandsAskOnce: Law = function* ({ events }) {
  const asked = new Map<string, string>()
  for (const event of events) {
    if (event.type !== 'run.requested/1' || event.data.command_id === null) continue
    const { command_id, run_id } = event.data
    if (asked.has(command_id)) yield `${command_id} asked for ${asked.get(command_id)} and ${run_id}`
    asked.set(command_id, run_id)
  }
}

export const runsBeginInTheirTurn: Law = function* ({ events, at }) {
  for (const event of events) {
    if (event.type !== 'run.started/1' || event.data.trigger.kind !== 'input') continue
    const { requested } = at(event.version - 1)
    if (requested[0]?.runId !== event.data.run_id) yield `${event.data.run_id} begins before ${requested[0]?.runId}`
  }
}

/** Inputs differ, so each can be told from the others. */
export const inputsAreReadOnce: Law = function* ({ events, end }) {
  const prompts = messageHistory(end).flatMap((message) =>
    message.kind === 'request' ? message.parts.flatMap((part) => (part.part_kind === 'user-prompt' ? [part.content] : [])) : [],
  )
  for (const event of events) {
    if (event.type !== 'run.requested/1' || !event.data.input) continue
    const { run_id, input } = event.data
    const found = prompts.filter((content) => content === input.value).length
    const heard = events.some((e) => e.type === 'model.responded/1' && e.run_id === run_id)
    if (found > 1 || (heard && found === 0)) yield `the input of ${run_id} stands ${found} times in the history`
  }
}

const isGranted = ({ item, outcome }: Wait): boolean =>
  item.kind === 'approval' && (outcome?.value?.value as { approved?: boolean } | undefined)?.approved === true

/** A granted approval is a reason to run the call; every other answer is what the model reads of it. */
export const answersAreRead: Law = function* ({ events, end }) {
  const read = new Set<string>()
  for (const event of events)
    if (event.type === 'tool.settled/1') {
      const part = event.data.part.value as { $completed?: string }
      if (part.$completed !== undefined) read.add(part.$completed)
    }
  for (const event of events) {
    if (event.type !== 'continuation.claimed/1') continue
    const wait = findWait(end, event.data.continuation_id)
    if (wait && !isGranted(wait) && !read.has(wait.id)) yield `${wait.id} is claimed, and the model does not read its answer`
  }
}

/** What was on its way may still fail the run; the run itself goes nowhere any more. */
export const cancelsAreObeyed: Law = function* ({ events, at }) {
  for (const event of events) {
    if (event.type !== 'run.completed/1' && event.type !== 'run.suspended/1') continue
    const { run } = at(event.version - 1)
    if (run?.runId === event.data.run_id && run.cancel) yield `${event.data.run_id} was told to stop, and then: ${event.type}`
  }
}

export const revisionsKeepWhatWasSaid: Law = function* ({ events, at }) {
  for (const { type, version } of events) {
    if (type !== 'history.revised/1') continue
    if (said(at(version - 1)) !== said(at(version))) yield `version ${version} changes more than system prompts`
  }
}

const said = (state: ThreadState): string =>
  canonicalJson(
    messageHistory(state).map((message) =>
      message.kind === 'request'
        ? // A request that was cut is whole once it is sent again.
          { ...message, state: '', timestamp: '', parts: message.parts.filter((part) => part.part_kind !== 'system-prompt') }
        : message,
    ) as unknown as JsonValue,
  )
