import { Payload } from '../../src/base/index.ts'
import {
  type Commit,
  catalogue,
  type EventDraft,
  eventCodec,
  fileSchemas,
  type LogEvent,
  upcasters,
} from '../../src/events/index.ts'

// The build that still wrote `model.failed/1`, as far as bytes go.

const { 'model.failed/2': _, ...kept } = catalogue
const from = upcasters['model.failed/1']!.from

/** Its codec: writes the retired type, and reads it as it stands. */
export const olderBuild = eventCodec(fileSchemas(), { declarations: { ...kept, 'model.failed/1': from }, upcasters: {} })

/** The draft as it would have written it. */
export function asOlder({ type, data }: EventDraft): EventDraft {
  if (type !== 'model.failed/2') return { type, data } as EventDraft
  const { step, code, retryable, error_type, status } = data
  const details = Payload.of(status === null ? { error_type } : { error_type, status })
  return { type: 'model.failed/1', data: { step, code, retryable, details } } as unknown as EventDraft
}

/** A stream's events as it would have written them: the same commits at the same times, under hashes of their own. */
export function rewritten(events: readonly LogEvent[]): Commit[] {
  const commits: Commit[] = []
  for (let i = 0; i < events.length; i += events[i]!.commit.size) {
    const { stream, previous, commit, time, actor, causation, run_id, attempt } = events[i]!
    const { id, base } = commit
    const head = commits.at(-1)?.records.at(-1)?.hash ?? previous
    const drafts = events.slice(i, i + commit.size).map(asOlder)
    commits.push(olderBuild.encodeCommit({ stream, base, previous: head, id, time, actor, causation, run_id, attempt }, drafts))
  }
  return commits
}
