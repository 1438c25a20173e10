import { type JsonObject, Payload } from '../base/index.ts'
import { externalIdKey, TOOL_APPROVAL, TOOL_CALL, USER_QUESTION } from '../continuations/index.ts'
import type { BatchItem, EventDraft } from '../events/index.ts'
import { APPROVAL_PRESENTATION } from '../messages/index.ts'
import type { Proposal } from '../projections/index.ts'
import { proposalDigest, toolIdentity } from './agent.ts'
import { PERMISSION_REASON } from './classify.ts'
import { INVOCATION_POLICY, POLICY_REASON } from './execute.ts'
import type { Deferred, PlanEnvironment } from './plan-calls.ts'
import type { ReservedId } from './reserve.ts'

const CAPABILITIES = { external: TOOL_CALL, approval: TOOL_APPROVAL, question: USER_QUESTION } as const

/**
 * The suspension and its waits, in one piece (R10): `run.suspended`, then per item `continuation.suspended` and `.armed`, so that no
 * wait is ever unarmed after a crash.
 */
export function suspend(proposal: Proposal, deferred: readonly Deferred[], env: PlanEnvironment): Proposal {
  const run = proposal.state.run
  if (!run) return proposal
  const items = deferred.map((item) => batchItem(item, proposal.context.now, env))
  const waits = deferred.flatMap((item, i) =>
    waitEvents(item, (items[i] as BatchItem).continuation_id, reservedFor(item, env), env.grants ?? null),
  )
  return proposal.add({ type: 'run.suspended/1', data: { run_id: run.runId, batch: items } }, ...waits)
}

/** A call that waits for a job of its own; of one that asked for a person first, the job is still to be submitted. */
const reservedFor = ({ externalId, call }: Deferred, env: PlanEnvironment): ReservedId | undefined =>
  externalId === undefined ? undefined : env.reserved?.get(call.tool_call_id)

function batchItem(item: Deferred, now: number, env: PlanEnvironment): BatchItem {
  const { tool, call, kind } = item
  const identity = toolIdentity(tool)
  const deadlineMs = (kind === 'external' ? tool.deadlineMs : undefined) ?? env.agent.deadlines.get(item.provider)
  const metadata = kind === 'approval' ? presented(item.metadata ?? {}, identity) : (item.metadata ?? {})
  return {
    model_call_id: call.tool_call_id,
    target_call_id: call.tool_call_id,
    tool_name: tool.name,
    tool: identity,
    arguments: Payload.of(item.args),
    kind,
    continuation_id: reservedFor(item, env)?.continuationId ?? env.continuationId(item.index),
    proposal_digest: proposalDigest(tool, item.args),
    metadata: Payload.of(metadata),
    deadline: deadlineMs === undefined ? null : now + deadlineMs,
  }
}

/** What a person is shown beside the call; never proof of anything. */
function presented(metadata: JsonObject, identity: string): JsonObject {
  const reason =
    INVOCATION_POLICY in metadata ? POLICY_REASON : metadata['reason'] === PERMISSION_REASON ? PERMISSION_REASON : undefined
  return { ...metadata, [APPROVAL_PRESENTATION]: { tool_id: identity, target: '', ...(reason === undefined ? {} : { reason }) } }
}

/** Without `submit` the external id is the continuation id: unique by construction, no reservation needed (design §6). */
const waitEvents = (item: Deferred, id: string, reserved: ReservedId | undefined, grants: Payload | null): EventDraft[] => [
  {
    type: 'continuation.suspended/1',
    data: {
      continuation_id: id,
      provider: item.provider,
      capability: CAPABILITIES[item.kind],
      schema_id: item.schemaId,
      external_id: reserved?.externalId ?? id,
      external_id_key: externalIdKey(item.provider, reserved?.externalId ?? id),
      resume: null,
      grants,
      generation: reserved?.generation ?? 0,
      deadline: null,
    },
  },
  { type: 'continuation.armed/1', data: { continuation_id: id, revision: 1 } },
]
