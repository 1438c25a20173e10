import { EARLY_DEFAULTS, type EarlyResults, HUMAN_PROVIDER } from '../continuations/index.ts'
import type { Agent } from '../harness/index.ts'

/** What is done with results that come before their wait (design §6). */
export interface EarlyResultsOptions {
  /** Providers whose results are held, beside those that tools of the agents here submit jobs to: those of hosts with a loop of their own. */
  providers?: readonly string[]
  /** Milliseconds for which one is held; then it is `unknown`. Default: a day. */
  keepMs?: number
  /** Results held of one provider; more are `held-full`. Default 10,000. */
  perProvider?: number
}

/** Results are held for whoever picks the ids of its jobs. */
export function earlyResults(agents: () => readonly Agent[], o: EarlyResultsOptions = {}): EarlyResults {
  const { providers = [], keepMs = EARLY_DEFAULTS.keepMs, perProvider = EARLY_DEFAULTS.perProvider } = o
  const submits = (provider: string) =>
    agents().some(({ tools }) => [...tools.values()].some((tool) => tool.submit !== undefined && tool.provider === provider))
  const holds = (provider: string) => provider !== HUMAN_PROVIDER && (providers.includes(provider) || submits(provider))
  return { holds, keepMs, perProvider }
}
