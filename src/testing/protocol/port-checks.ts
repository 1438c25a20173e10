import { type StreamKey, ZERO_HASH } from '../../events/index.ts'
import type { RecordedEvent } from '../../log/index.ts'
import { type Folded, foldStream, stateHash } from '../../projections/index.ts'
import { check } from './failure.ts'
import type { PortAnswer } from './port-writer.ts'

/** What a log holds at the end, and what that says of the answers given before. */
export class Found {
  /** Ids of the commits it has. */
  readonly accepted = new Set<string>()
  /** Commit that applied each command. */
  readonly #applied = new Map<string, string>()

  /** Takes a stream's records, which must be numbered and chained without a gap. */
  add(stream: StreamKey, records: readonly RecordedEvent[]): void {
    let previous = ZERO_HASH
    for (const [i, { version, hash, event }] of records.entries()) {
      const follows = version === i + 1 && (event === undefined || event.previous === previous)
      check(follows, 'version-gap', () => `Version ${version} of ${stream} does not continue version ${i}.`)
      previous = hash
      if (!event) continue
      this.accepted.add(event.commit.id)
      this.#apply(event.causation?.command_id ?? 'nobody', event.commit.id)
    }
  }

  #apply(command: string, by: string): void {
    if (command === 'nobody') return
    const other = this.#applied.get(command)
    check(other === undefined || other === by, 'applied-twice', () => `Command ${command} was applied by ${other} and by ${by}.`)
    this.#applied.set(command, by)
  }

  /** What was said of a commit must be so. */
  checkVerdict(id: string, accepted: boolean): void {
    const said = accepted ? 'accepted' : 'refused'
    check(this.accepted.has(id) === accepted, 'answer-contradicted', () => `Commit ${id} was ${said}; the log says otherwise.`)
  }

  /** An accepted command was applied by the commit named, any other by none. */
  checkAnswer({ command: { id, kind }, outcome, commitId }: PortAnswer): void {
    const by = this.#applied.get(id)
    check(
      by === commitId,
      'answer-contradicted',
      () => `${id} (${kind}) was answered ${outcome}; the log has ${by ?? 'nothing of it'}.`,
    )
  }
}

/** A follower that stopped and started again has read what is there, once, in order, and folded it to the same state. */
export function checkReader(
  name: string,
  followed: readonly RecordedEvent[],
  folded: Folded,
  records: readonly RecordedEvent[],
): void {
  const text = (of: readonly RecordedEvent[]) => of.map(({ version, hash }) => `${version} ${hash}`).join('\n')
  check(text(followed) === text(records), 'readers-differ', () => `${name} has followed other records than the log reads.`)
  const complete = foldStream(records)
  const same =
    stateHash(folded.state) === stateHash(complete.state) && folded.quarantine?.version === complete.quarantine?.version
  check(same, 'readers-differ', () => `${name} has another state than a complete fold.`)
}
