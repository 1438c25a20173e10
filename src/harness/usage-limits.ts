import { isJsonObject } from '../base/index.ts'
import { type RunState, type ThreadState, usageOf } from '../projections/index.ts'

/** What a run may use; beyond it, it fails with `usage_limit_exceeded`. Absent: no limit but 1,000 requests. */
export interface UsageLimits {
  requests?: number
  toolCalls?: number
  inputTokens?: number
  outputTokens?: number
  totalTokens?: number
}

interface Exceeded {
  code: 'usage_limit_exceeded'
  message: string
}
const exceeded = (message: string): Exceeded => ({ code: 'usage_limit_exceeded', message })

/** The limits as recorded with the run. */
export function limitsOf(run: RunState | undefined): UsageLimits {
  const options = run?.options?.value
  const limits = isJsonObject(options) ? options['usage_limits'] : undefined
  return isJsonObject(limits) ? (limits as UsageLimits) : {}
}

/** Model requests per run before it fails, whatever its limits (settled list §2). */
const MAX_STEPS = 1000

/** Why the run may not ask its model again. */
export function usageLimit(state: ThreadState): Exceeded | undefined {
  const run = state.run
  if (!run) return undefined
  const limits = limitsOf(run)
  const { inputTokens: input, outputTokens: output, totalTokens: total } = limits
  if (input === undefined && output === undefined && total === undefined) return undefined
  const used = usageOf(state, run.runId)
  if (input !== undefined && used.inputTokens > input) return exceeded(`The run read more than ${input} tokens.`)
  if (output !== undefined && used.outputTokens > output) return exceeded(`The run wrote more than ${output} tokens.`)
  if (total !== undefined && used.inputTokens + used.outputTokens > total)
    return exceeded(`The run used more than ${total} tokens.`)
  return undefined
}

/** Why the run may not send the request that is composed. */
export function requestLimit(run: RunState): Exceeded | undefined {
  const { requests } = limitsOf(run)
  const made = run.step + (run.resumed?.requests ?? 0)
  if (requests !== undefined && made > requests) return exceeded(`The run made ${requests} model requests.`)
  return run.step > MAX_STEPS ? exceeded(`The run made ${MAX_STEPS} model requests.`) : undefined
}

/** Why the calls that are about to start may not. */
export function toolLimit({ run }: ThreadState): Exceeded | undefined {
  const { toolCalls } = limitsOf(run)
  return run && toolCalls !== undefined && run.toolCalls > toolCalls
    ? exceeded(`The run made ${toolCalls} calls of tools.`)
    : undefined
}
