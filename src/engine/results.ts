import { frozenCopy, isJsonObject, type JsonObject } from '../base/index.ts'
import type { BatchItem, ThreadKey } from '../events/index.ts'
import { CONTINUE, DeferredRequests, RunResult as HarnessResult } from '../harness/index.ts'
import type { ResponseMessage } from '../messages/index.ts'
import {
  type Wait as FoldedWait,
  findWait,
  harnessState,
  messageOf,
  type RunEnd,
  refersToContent,
  type ThreadState,
  type ThreadStore,
  usageOf,
} from '../projections/index.ts'
import type { RunResult, Wait } from './types.ts'

/** The public view of a wait. */
export const publicWait = (key: ThreadKey, wait: FoldedWait): Wait => ({
  id: wait.id,
  thread: key,
  kind: wait.item.kind as Wait['kind'],
  provider: wait.provider,
  tool: wait.item.tool_name,
  arguments: structuredClone(wait.item.arguments.value),
  status: wait.status,
  schemaId: wait.schemaId,
  externalId: wait.externalId,
  digest: wait.item.proposal_digest,
  deadline: wait.deadline,
  createdAt: wait.createdAt,
})

export const keyOf = (state: ThreadState): ThreadKey => {
  const { application, user, thread } = state.identity as ThreadKey
  return { application, user, thread }
}

/** The result of a run that ended, as its caller sees it: with the thread as it was then. */
export async function resultOf(store: ThreadStore, state: ThreadState, end: RunEnd): Promise<RunResult> {
  if (isStill(state, end)) return runResult(state, end)
  const stream = state.identity?.stream ?? ''
  return runResult((await store.at(stream, end.version)).state, end, state)
}

/** True if nothing has come into the history since the run ended. */
const isStill = (state: ThreadState, end: RunEnd): boolean =>
  (state.run === undefined || state.run.runId === end.runId) && (state.history.at(-1)?.version ?? 0) <= end.version

/** @param now the thread as it is, where its waits are looked up */
function runResult(state: ThreadState, end: RunEnd, now = state): RunResult {
  const suspended = end.status === 'suspended'
  const run = state.run?.runId === end.runId ? state.run : undefined
  const items = run?.items ?? []
  const key = keyOf(state)
  const details = end.details?.value
  const lasting = refersToContent(state) ? outlasting : <T>(look: () => T) => look
  return new HarnessResult<Wait>({
    status: end.status,
    thread: key,
    runId: end.runId,
    invocationId: end.invocationId,
    version: end.version,
    output: frozenCopy(end.output?.value ?? null),
    failure: end.failure && { ...end.failure, details: isJsonObject(details) ? details : {} },
    suspendReason: suspended ? 'deferred' : null,
    deferred: suspended ? lasting(() => deferredRequests(items)) : null,
    state: lasting(() => harnessState(state)),
    usage: lasting(() => usageOf(state, end.runId)),
    before: lasting(() => firstOf(state, end)),
    after: lasting(() => lastOf(state, end)),
    waits: suspended
      ? items.flatMap(({ continuation_id: id }) => findWait(now, id) ?? []).map((wait) => publicWait(key, wait))
      : [],
  })
}

/** What is kept in a log can be looked at while it is open, and a result outlives it: so it is looked at now. */
function outlasting<T>(look: () => T): () => T {
  try {
    const value = look()
    return () => value
  } catch {
    return look
  }
}

/** What a suspension waits for, as a host of the original sees it. */
export function deferredRequests(items: readonly BatchItem[]): DeferredRequests {
  const request = (item: BatchItem) => {
    const modelCall = { toolCallId: item.model_call_id, toolName: item.tool_name, args: item.arguments.value }
    return { modelCall, targetCall: { ...modelCall, toolCallId: item.target_call_id }, identity: item.tool }
  }
  const of = (approval: boolean) => items.filter(({ kind }) => (kind === 'approval') === approval).map(request)
  const metadata = Object.fromEntries(items.map((item) => [item.target_call_id, item.metadata.value as JsonObject]))
  return new DeferredRequests({ calls: of(false), approvals: of(true), metadata })
}

/** Where in the history the messages of a run begin; of a completed one whose model was asked to go on, those of the last attempt. */
function firstOf(state: ThreadState, { runId, status }: RunEnd): number {
  let first = state.history.length
  for (let i = first - 1; i >= 0; i--) {
    const entry = state.history.at(i)
    if (entry?.runId !== runId) {
      if (entry?.version === 0 || entry?.runId === null) continue
      break
    }
    first = i
    if (status === 'completed' && entry.role === 'request' && asksToGoOn(messageOf(entry))) break
  }
  return first
}

/** Where they end: what closes the calls of a response that a cancel cut is not the run's own. */
function lastOf({ history }: ThreadState, { status }: RunEnd): number {
  const cut = history.length >= 2 ? history.at(history.length - 2) : undefined
  const isCut = cut?.role === 'response' && (messageOf(cut) as ResponseMessage).state === 'interrupted'
  return status === 'cancelled' && isCut && history.at(-1)?.role === 'request' ? history.length - 1 : history.length
}

const asksToGoOn = (message: ReturnType<typeof messageOf>): boolean =>
  message.kind === 'request' && message.parts.some((part) => part.part_kind === 'user-prompt' && part.content === CONTINUE)
