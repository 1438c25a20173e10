import { setTimeout as sleep } from 'node:timers/promises'
import {
  ContinuationConflictError,
  ContinuationFailure,
  type ContinuationProvider,
  ContinuationValidationError,
  type ProviderPendingContinuation,
} from '../../src/index.ts'
import type { Job, JobsClient } from './client.ts'

const PAGE = 100
const FIRST_POLL_MS = 250
const LONGEST_POLL_MS = 5_000

export interface MonitorOptions {
  provider: ContinuationProvider
  jobs: JobsClient
  /** Stops the monitor; jobs and waits go on. */
  signal: AbortSignal
  /** Milliseconds between two looks for new waits and for those that ended. Default 5,000. */
  everyMs?: number
  /** Told of each wait that is watched and of each that ended; ids only. */
  say?: (line: { event: string; wait: string }) => void
}

/**
 * Watches the jobs that open waits stand for, and completes each wait with what became of its job. All it knows it reads from the log and asks the
 * service: after a crash it finds its work again by itself, and two monitors do no harm.
 */
export async function monitorJobs(o: MonitorOptions): Promise<void> {
  const watched = new Map<string, AbortController>()
  try {
    while (!o.signal.aborted) {
      const open = await pending(o.provider)
      for (const [id, controller] of watched) if (!open.has(id)) controller.abort()
      for (const [id, pair] of open) {
        if (watched.has(id)) continue
        const controller = new AbortController()
        watched.set(id, controller)
        o.say?.({ event: 'watching', wait: id })
        void watch(o, pair, controller.signal)
          .catch((error) => {
            if (!controller.signal.aborted) o.say?.({ event: 'not watched', wait: `${id} ${(error as Error).name}` })
          })
          .finally(() => {
            watched.delete(id)
            o.say?.({ event: 'over', wait: id })
          })
      }
      await sleep(o.everyMs ?? 5_000, undefined, { signal: o.signal }).catch(() => {})
    }
  } finally {
    for (const controller of watched.values()) controller.abort()
  }
}

/** Every open wait of the provider, page by page. */
async function pending(provider: ContinuationProvider): Promise<Map<string, ProviderPendingContinuation>> {
  const open = new Map<string, ProviderPendingContinuation>()
  for (let after: string | null = null; ; ) {
    const page: ProviderPendingContinuation[] = await provider.listPending({ after, limit: PAGE })
    for (const pair of page) open.set(pair.record.continuationId, pair)
    if (page.length < PAGE) return open
    after = page.at(-1)?.record.continuationId ?? null
  }
}

/** Polls one job, slower while nothing changes, until it has ended; then completes its wait. */
async function watch({ provider, jobs }: MonitorOptions, pair: ProviderPendingContinuation, signal: AbortSignal): Promise<void> {
  let status: Job['status'] | undefined
  for (let wait = FIRST_POLL_MS; ; wait = Math.min(2 * wait, LONGEST_POLL_MS)) {
    const job = await jobs.status(pair.externalId, signal)
    if (!job) return settle(provider, pair, { failure: 'job_unknown' })
    if (job.status === 'succeeded') return settle(provider, pair, { result: job.result })
    if (job.status === 'failed') return settle(provider, pair, { failure: job.error ?? 'job_failed' })
    if (job.status !== status) wait = FIRST_POLL_MS
    status = job.status
    await sleep(wait, undefined, { signal })
  }
}

/** The engine's own check of the result comes on top of this one. */
const validate = (value: unknown) => value

async function settle(
  provider: ContinuationProvider,
  { externalId, record }: ProviderPendingContinuation,
  outcome: { result: unknown } | { failure: string },
): Promise<void> {
  const { userId, sessionId, runId, schemaId } = record
  const wait = { userId, sessionId, runId, externalId, schemaId }
  try {
    if ('result' in outcome) await provider.complete({ ...wait, result: outcome.result, validate })
    else await provider.fail({ ...wait, failure: new ContinuationFailure({ code: outcome.failure, retryable: false }) })
  } catch (error) {
    if (error instanceof ContinuationConflictError) return // Another monitor was first, or nobody waits any more.
    if (!(error instanceof ContinuationValidationError) || 'failure' in outcome) throw error
    await settle(provider, { externalId, record } as ProviderPendingContinuation, { failure: 'result_refused' })
  }
}
