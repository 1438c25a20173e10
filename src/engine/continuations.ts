import type { JsonValue } from '../base/index.ts'
import {
  apiSource,
  ContinuationConflictError,
  type ContinuationFailure,
  ContinuationValidationError,
  type HostWaits,
  HUMAN_PROVIDER,
  type Receipt,
  type SubmitDeps,
  settleHeldFor,
  submitRecord,
} from '../continuations/index.ts'
import type { Wait } from '../projections/index.ts'
import { cancelThread } from './cancel.ts'

/** The waits of threadlog's own runs, as the provider API reaches them: judged and validated like any other result (design §6a). */
/** @param held for results that came before their wait: judged as those of topics are */
export function hostWaits(deps: SubmitDeps, held: SubmitDeps): HostWaits {
  return {
    async resolve({ wait, outcome, schemaId }) {
      const record = { provider: wait.provider, continuation_id: wait.id, schema_id: schemaId, ...submitted(outcome) }
      const source = apiSource('continuations', deps.store.ids.token())
      const authority = { allows: (provider: string) => provider !== HUMAN_PROVIDER }
      const { receipt } = await submitRecord(deps, record, {
        actor: { kind: 'provider', id: '', source: 'api' },
        source,
        authority,
      })
      refuse(receipt, wait)
    },
    // What fails here the sweep of an engine finds.
    suspended: ({ stream, continuationId }) => settleHeldFor(held, stream, continuationId).catch(() => {}),
    async cancel({ stream, failure }) {
      await cancelThread(deps.store, stream, failure.code, null, failure.toJSON())
    },
  }
}

const submitted = (outcome: { result: JsonValue } | { failure: ContinuationFailure }) =>
  'failure' in outcome ? { failure: outcome.failure.toJSON() } : outcome

/** A verdict as the provider API says it. */
function refuse({ verdict, digest, expected }: Receipt, wait: Wait): void {
  switch (verdict) {
    case 'accepted':
      return
    case 'duplicate':
    case 'conflict':
      throw new ContinuationConflictError(wait.status === 'claimed' ? 'already_claimed' : 'already_resolved', {
        same: verdict === 'duplicate',
        ...(digest === undefined ? {} : { digest }),
      })
    case 'expired':
      throw new ContinuationConflictError('expired')
    case 'cancelled':
    case 'abandoned':
      throw new ContinuationConflictError('cancelled')
    case 'late':
    case 'stale-branch':
      throw new ContinuationConflictError('run_not_waiting')
    case 'invalid':
    case 'too-large':
    case 'unreadable':
      throw new ContinuationValidationError({ path: 'result', expected: expected ?? 'what the wait accepts' })
    default:
      throw new ContinuationConflictError('unknown')
  }
}
