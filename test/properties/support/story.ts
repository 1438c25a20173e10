import type { LogEvent } from '../../../src/events/index.ts'
import { emptyFold, type Folded, foldRecord, type ThreadState } from '../../../src/projections/index.ts'
import type { World } from './world.ts'

/** A commit as it stands in the log, and the fold on both sides of it. */
export interface Committed {
  readonly events: readonly LogEvent[]
  readonly before: ThreadState
  readonly after: ThreadState
}

/** What a world left behind, read once for all laws. */
export interface Story {
  readonly world: World
  readonly events: readonly LogEvent[]
  readonly commits: readonly Committed[]
  /** The fold after each number of events, made from the first one. */
  readonly folds: readonly Folded[]
  readonly end: ThreadState
  at(version: number): ThreadState
}

export function storyOf(world: World): Story {
  const folds: Folded[] = [emptyFold]
  for (const record of world.log.records) folds.push(foldRecord(folds.at(-1) as Folded, record))
  const at = (version: number): ThreadState => (folds[version] as Folded).state
  const events = world.log.records.map((record) => record.event as LogEvent)
  const commits: Committed[] = []
  for (let done = 0; done < events.length; ) {
    const { size } = (events[done] as LogEvent).commit
    commits.push({ events: events.slice(done, done + size), before: at(done), after: at(done + size) })
    done += size
  }
  return { world, events, commits, folds, at, end: at(events.length) }
}

/** Says what is wrong, each in one line; nothing when all is well. */
export type Law = (story: Story) => Iterable<string>
