import type { Execution } from './process.ts'
import type { Law, Story } from './story.ts'

/** The dispatch an effect began under: the latest one of its key when it began. */
function dispatchOf({ events }: Story, { key, version }: Execution) {
  const event = events.slice(0, version).findLast((e) => e.type === 'tool.dispatched/1' && e.data.idempotency_key === key)
  return event?.type === 'tool.dispatched/1' ? event : undefined
}

export const effectsHappenOnce: Law = function* (story) {
  const earlier = new Map<string, Execution>()
  for (const execution of story.world.executions) {
    const { key, agent, tool, callId } = execution
    const before = earlier.get(key)
    earlier.set(key, execution)
    if (!before) continue
    const dispatch = dispatchOf(story, execution)
    if (dispatchOf(story, before)?.version === dispatch?.version) yield `${callId} ${tool} ran twice for one dispatch`
    // The run may have been ended by another process before this one heard that its dispatch was accepted.
    const mode = dispatch && story.at(dispatch.version).run?.toolRecovery
    const marked = agent.tools.get(tool)?.retryable === true
    if (mode !== 'always' && !(mode === 'declared' && marked)) yield `${callId} ${tool} ran twice in mode ${mode}`
  }
}

export const effectsFollowTheirEvent: Law = function* (story) {
  const keys = new Map<string, string>()
  for (const execution of story.world.executions) {
    const { callId, tool, owner, version, key } = execution
    const dispatch = dispatchOf(story, execution)
    if (!dispatch) {
      yield `${callId} ${tool} began when the log held ${version} events, and no dispatch of it`
      continue
    }
    if (dispatch.data.call_id !== callId) yield `${callId} ran under the key of ${dispatch.data.call_id}`
    const then = story.at(dispatch.version)
    if (then.run?.owner.id !== owner) yield `${owner} ran ${callId}, which another process dispatched`
    const origin = then.batch?.origin ?? ''
    if ((keys.get(key) ?? origin) !== origin) yield `one key stands for calls of two responses: ${keys.get(key)} and ${origin}`
    keys.set(key, origin)
  }
}

export const takeoversEndEffects: Law = function* (story) {
  for (const execution of story.world.executions) {
    const dispatch = dispatchOf(story, execution)
    const taken = story.events
      .slice(0, execution.version)
      .find(
        (e) => e.type === 'run.recovered/1' && e.data.run_id === dispatch?.run_id && e.data.attempt > (dispatch?.attempt ?? 0),
      )
    if (taken) yield `${execution.callId} ${execution.tool} began after the takeover of version ${taken.version}`
  }
}

export const zombiesAreNotHeard: Law = function* ({ events }) {
  const current = new Map<string, number>()
  const ended = new Set<string>()
  for (const event of events) {
    const { run_id, attempt, version, type } = event
    if (run_id !== null && attempt !== null) {
      const now = current.get(run_id) ?? 1
      const takes = event.type === 'run.recovered/1' && event.data.attempt === now + 1 && attempt === now + 1
      if (attempt !== now && !takes)
        yield `${type} at version ${version} is of attempt ${attempt}, when attempt ${now} is current`
      if (ended.has(run_id)) yield `${type} at version ${version} is of a run that has ended`
      current.set(run_id, attempt)
    }
    if (event.type === 'run.completed/1' || event.type === 'run.failed/1' || event.type === 'run.cancelled/1')
      ended.add(event.data.run_id)
  }
}

export const approvalsCountForTheirAttempt: Law = function* (story) {
  for (const execution of story.world.executions) {
    const { callId, tool, approved, agent, version } = execution
    if (!approved) {
      if (agent.tools.get(tool)?.needsApproval({ n: 1 })) yield `${callId} ${tool} ran without an approval`
      continue
    }
    const dispatch = dispatchOf(story, execution)
    const granted = [...story.at(version).closedWaits].some(
      ([, { item, claimedBy, outcome }]) =>
        item.kind === 'approval' &&
        item.model_call_id === callId &&
        claimedBy?.runId === dispatch?.run_id &&
        claimedBy?.attempt === dispatch?.attempt &&
        (outcome?.value?.value as { approved?: boolean } | undefined)?.approved === true,
    )
    if (!granted) yield `${callId} ${tool} ran as approved, by an attempt that claimed no approval of it`
  }
}

/** In mode never an attempt dispatches what it was told itself, and what was approved for it. */
export const neverTakesNothingUp: Law = function* ({ events, at }) {
  for (const event of events) {
    if (event.type !== 'tool.dispatched/1') continue
    const { run, batch, closedWaits } = at(event.version - 1)
    if (run?.toolRecovery !== 'never' || (batch?.runId === event.run_id && batch.attempt === event.attempt)) continue
    const waitId = batch?.calls.get(event.data.call_id)?.waitId
    const by = waitId === undefined ? undefined : closedWaits.get(waitId)?.claimedBy
    if (by?.runId !== event.run_id || by?.attempt !== event.attempt)
      yield `${event.data.call_id} of another attempt is dispatched at version ${event.version}, in mode never`
  }
}
