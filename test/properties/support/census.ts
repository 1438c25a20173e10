import { findWait } from '../../../src/projections/index.ts'
import type { Story } from './story.ts'

/** What must have happened somewhere for the laws to mean anything. */
const WANTED = [
  'approved effects',
  'replayed effects',
  'effects that came too late',
  'kills',
  'torn commits',
  'void commits',
  'redelivered results',
  'run.recovered',
  'run.cancel-requested',
  'history.revised',
  'started by batch',
  'failed deferred_surface_mismatch',
  'failed tool_threw',
  'continuation.failed',
  'continuation.cancelled',
  'continuation.abandoned',
  'continuation.expired',
  'continuation.extended',
  'expired beside an answer',
  ...['returned', 'failed', 'denied', 'retried'].map((settlement) => `settled ${settlement}`),
  ...['interrupted', 'not-started', 'threw', 'tool-gone', 'unanswered'].map((reason) => `settled unknown ${reason}`),
  ...['accepted', 'duplicate', 'conflict', 'cancelled', 'abandoned', 'expired', 'invalid', 'proposal-changed'].map(
    (v) => `verdict ${v}`,
  ),
]

/** How often what happened in all worlds. */
export class Census {
  readonly #counts = new Map<string, number>()

  count({ world, events, end }: Story, steps: number): void {
    const { executions, killed, torn, log, submitted } = world
    this.#add('steps', steps)
    this.#add('events', events.length)
    this.#add('effects', executions.length)
    this.#add('approved effects', executions.filter(({ approved }) => approved).length)
    this.#add('replayed effects', executions.length - new Set(executions.map(({ key }) => key)).size)
    this.#add('effects that came too late', dispatches(events) - executions.length)
    this.#add('kills', killed.size)
    this.#add('torn commits', torn.length)
    this.#add('void commits', log.voided.size)
    for (const { verdicts } of submitted) {
      for (const verdict of verdicts) this.#add(`verdict ${verdict}`)
      this.#add('results', verdicts.length)
      if (verdicts.length > 1) this.#add('redelivered results')
    }
    for (const event of events) {
      this.#add(event.type.replace(/\/\d+$/, ''))
      if (event.type === 'tool.settled/1')
        this.#add(`settled ${[event.data.settlement, event.data.reason ?? []].flat().join(' ')}`)
      if (event.type === 'run.started/1') this.#add(`started by ${event.data.trigger.kind}`)
      if (event.type === 'run.started/1' && isMixed(event.data.trigger.continuation_ids, end))
        this.#add('expired beside an answer')
      if (event.type === 'run.failed/1') this.#add(`failed ${event.data.failure.code}`)
    }
  }

  missing = (): string[] => WANTED.filter((what) => !this.#counts.get(what))

  summary(): string {
    const told = ['steps', 'events', 'effects', 'replayed effects', 'results', 'run.recovered', 'kills', 'void commits']
    return told.map((what) => `${this.#counts.get(what) ?? 0} ${what}`).join(', ')
  }

  all(): Record<string, number> {
    return Object.fromEntries([...this.#counts].sort())
  }

  #add(what: string, by = 1): void {
    if (by > 0) this.#counts.set(what, (this.#counts.get(what) ?? 0) + by)
  }
}

const dispatches = (events: Story['events']): number => events.filter(({ type }) => type === 'tool.dispatched/1').length

/** A batch of which one wait was answered, and another not in time. */
function isMixed(ids: readonly string[], end: Story['end']): boolean {
  const statuses = new Set(ids.map((id) => findWait(end, id)?.status))
  return statuses.has('expired') && statuses.has('claimed')
}
