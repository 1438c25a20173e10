import { type JsonValue, Payload, toJson } from '../base/index.ts'
import type { Proposal } from '../projections/index.ts'
import { isUserContent, PAYLOAD_LIMIT } from './drafts.ts'
import { CARRIED } from './plan.ts'
import { runError } from './run-errors.ts'

const MAX_INPUT_ID = 256

/**
 * Accepts input for the run that is going on; its next request carries it.
 * @throws ThreadlogError of kind `RunError`: `input_invalid`, `run_not_active`
 */
export function steer(proposal: Proposal, o: { id: string; input: JsonValue; runId?: string | undefined }): Proposal {
  const length = typeof o.id === 'string' && o.id.isWellFormed() ? [...o.id].length : 0
  if (length < 1 || length > MAX_INPUT_ID || o.id.startsWith(CARRIED))
    throw runError('input_invalid', 'The id of the input is not usable.', {
      path: 'id',
      expected: `1 to ${MAX_INPUT_ID} characters of well-formed text, not beginning with "${CARRIED}"`,
    })
  if (!isUserContent(o.input))
    throw runError('input_invalid', 'The input is not the content of a user message.', {
      path: 'input',
      expected: 'text, or a list of text and content items',
    })
  const content = Payload.of(toJson(o.input))
  if (content.bytes.byteLength > PAYLOAD_LIMIT - 4096)
    throw runError('input_invalid', 'The input is too large.', {
      path: 'input',
      expected: `at most ${PAYLOAD_LIMIT - 4096} bytes`,
    })
  const run = proposal.state.run
  if (run?.status !== 'running' || run.cancel || (o.runId !== undefined && o.runId !== run.runId))
    throw runError('run_not_active', 'No run of this thread is going on.', { hint: 'Start one with this input.' })
  if (run.accepted.some(({ id }) => id === o.id)) return proposal
  return proposal.add({ type: 'input.accepted/1', data: { run_id: run.runId, input_id: o.id, content } })
}
