import type { JsonValue } from '../base/index.ts'
import type { StreamKey } from '../events/index.ts'
import { steer } from '../harness/index.ts'
import { Proposal, type ThreadStore } from '../projections/index.ts'

/** Input for the run that is going on. */
export interface Steering {
  input: JsonValue
  /** 1 to 256 characters; the same id is accepted once. Default: a new one. */
  id?: string | undefined
  /** Only this run; absent: whichever is going on. */
  runId?: string
}

/** @throws ThreadlogError of kind `RunError`: `run_not_active`, `input_invalid` */
export async function steerRun(
  store: ThreadStore,
  stream: StreamKey,
  { id, input, runId }: Steering,
  actor: string,
): Promise<void> {
  const inputId = id ?? store.ids.token()
  await store.commit(stream, (state) => {
    const by = { kind: actor, id: '', source: 'steer' }
    const context = { stream, now: store.clock.now(), actor: by, runId: state.run?.runId ?? null, attempt: null }
    return steer(Proposal.on(state, context), { id: inputId, input, runId })
  })
}
