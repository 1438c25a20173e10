import type { Story } from './story.ts'

/** How often what happened in all worlds: a law that nothing could break proves nothing. */
export class Census {
  readonly counts = new Map<string, number>()

  count({ world, events }: Story, steps: number): void {
    this.#add('steps', steps)
    this.#add('events', events.length)
    this.#add('effects', world.executions.length)
    this.#add('approved effects', world.executions.filter(({ approved }) => approved).length)
    this.#add('kills', world.killed.size)
    this.#add('torn commits', world.torn.length)
    this.#add('void commits', world.log.voided.size)
    const keys = new Set(world.executions.map(({ key }) => key))
    this.#add('replayed effects', world.executions.length - keys.size)
    this.#add('effects that came too late', dispatches(events) - world.executions.length)
    for (const { verdicts } of world.submitted) {
      for (const verdict of verdicts) this.#add(`verdict ${verdict}`)
      if (verdicts.length > 1) this.#add('redelivered results')
    }
    for (const event of events) {
      this.#add(event.type.replace('/1', ''))
      if (event.type === 'tool.settled/1')
        this.#add(`settled ${event.data.settlement}${event.data.reason === null ? '' : ` ${event.data.reason}`}`)
      if (event.type === 'run.started/1') this.#add(`started by ${event.data.trigger.kind}`)
      if (event.type === 'run.failed/1') this.#add(`failed ${event.data.failure.code}`)
      if (event.type === 'tool.dispatched/1' && event.data.number > 1) this.#add('dispatched again')
    }
  }

  of = (what: string): number => this.counts.get(what) ?? 0

  #add(what: string, by = 1): void {
    this.counts.set(what, this.of(what) + by)
  }
}

const dispatches = (events: Story['events']): number => events.filter(({ type }) => type === 'tool.dispatched/1').length
