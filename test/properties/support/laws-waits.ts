import { findWait } from '../../../src/projections/index.ts'
import type { Law } from './story.ts'

/** Verdicts that stand once given. The others may give way to what has become of the wait meanwhile, but never to `accepted`. */
const LASTING = new Set(['accepted', 'duplicate', 'conflict', 'cancelled', 'abandoned', 'expired', 'late', 'schema-mismatch'])

export const verdictsAreFinal: Law = function* ({ world, end }) {
  for (const [i, { verdicts, waitId, submission, context }] of world.submitted.entries()) {
    const first = verdicts[0]
    const outcome = findWait(end, waitId)?.outcome
    for (const verdict of verdicts) {
      if (verdict !== first && (LASTING.has(first as string) || verdict === 'accepted'))
        yield `result #${i}: ${first}, then ${verdict}`
      if (verdict === 'duplicate' && outcome?.digest !== submission.digest) yield `result #${i} is no duplicate`
      if (verdict === 'conflict' && (!outcome || outcome.digest === submission.digest)) yield `result #${i} is no conflict`
      if (verdict !== 'accepted') continue
      if (outcome?.digest !== submission.digest) yield `result #${i} is accepted, and its wait has another outcome`
      const itself = JSON.stringify(outcome?.source) === JSON.stringify(context.source)
      if (!itself && (submission.result_id === undefined || submission.result_id !== outcome?.resultId))
        yield `result #${i} is accepted, and another one answered the wait`
    }
  }
}

export const onlyTheBarrierSaysUnknown: Law = function* ({ world }) {
  for (const [i, { verdicts }] of world.submitted.entries())
    for (const verdict of verdicts)
      if (verdict === 'unknown' || verdict === 'wrong-scope') yield `result #${i}, of a wait that exists, is ${verdict}`
}

export const claimsBeginARun: Law = function* ({ commits }) {
  for (const { events } of commits) {
    const claimed = events.flatMap((e) => (e.type === 'continuation.claimed/1' ? [e.data.continuation_id] : []))
    if (claimed.length === 0) continue
    const started = events.find((e) => e.type === 'run.started/1')
    const incorporated = started?.type === 'run.started/1' ? started.data.trigger.continuation_ids : []
    if (claimed.some((id) => !incorporated.includes(id)))
      yield `${claimed.join(', ')} claimed without the run that goes on with them`
  }
}

export const timeIsOverOnce: Law = function* ({ events, at, end, world }) {
  for (const event of events) {
    if (event.type !== 'continuation.expired/1') continue
    const id = event.data.continuation_id
    const before = findWait(at(event.version - 1), id)
    if (before?.outcome) yield `${id} has expired at version ${event.version}, and was answered before`
    if (before?.deadline == null || before.deadline > event.time) yield `${id} has expired before its time`
    if (findWait(end, id)?.outcome) yield `${id} has expired, and was answered all the same`
  }
  for (const [i, { verdicts, waitId }] of world.submitted.entries())
    if (verdicts.includes('expired') && findWait(end, waitId)?.status !== 'expired')
      yield `result #${i} was too late for what has not expired`
}

/** What the model reads of a call whose wait has expired, unless nobody waits for it any more. */
export const expiryIsRead: Law = function* ({ events, at }) {
  for (const event of events) {
    if (event.type !== 'tool.settled/1' || !event.run_id) continue
    const waitId = at(event.version - 1).batch?.calls.get(event.data.call_id)?.waitId
    const expired = waitId !== undefined && findWait(at(event.version - 1), waitId)?.status === 'expired'
    if (expired && event.data.settlement !== 'failed')
      yield `${event.data.call_id} is ${event.data.settlement}, and its wait has expired`
  }
}

export const waitsAreArmedAndClosed: Law = function* ({ commits }) {
  for (const { after } of commits) {
    for (const wait of after.waits.values()) {
      if (!wait.ready) yield `${wait.id} stands unarmed at version ${after.version}`
      if (after.invocations.has(wait.invocationId))
        yield `${wait.id} is open at version ${after.version}, and its invocation has ended`
    }
    if (after.run?.status === 'suspended' && after.run.waitIds.length === 0)
      yield `version ${after.version}: suspended on nothing`
  }
}

export const everyRunEnds: Law = function* ({ world, end, events }) {
  for (const event of events) {
    if (event.type !== 'run.requested/1' && event.type !== 'run.started/1') continue
    const { run_id } = event.data
    if (!end.runs.has(run_id)) yield `${run_id} was ${event.type === 'run.requested/1' ? 'requested' : 'started'} and has no end`
    const invocation = event.type === 'run.started/1' ? event.data.invocation_id : run_id
    if (!end.invocations.has(invocation)) yield `invocation ${invocation} has no end`
  }
  if (end.run) yield `a run is ${end.run.status} in the end`
  for (const { runId, by } of world.asks) if (by.alive && !world.results.has(runId)) yield `who asked for ${runId} still waits`
}

export const nothingDies: Law = function* ({ world }) {
  yield* world.deaths
}
