import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { jsonDigest } from '../../../src/base/index.ts'
import { type Commit, decodeEvent, type LogEvent } from '../../../src/events/index.ts'
import type { RecordedEvent } from '../../../src/log/index.ts'
import { FOLD_VERSION, foldStream, harnessStateJson, stateHash } from '../../../src/projections/index.ts'

// A recorded log is a file of lines: first what its fold gave, then each record with the hash of the state behind it. The records are
// for ever; what they fold to stands once per fold version: in the file for the version that recorded it, in `refolded.json` of each later.

/** Where recorded logs stand, a folder for each fold version. */
export const recordedLogs = new URL('../../fixtures/logs/', import.meta.url)

/** What a log folds to. */
export interface Outcome {
  events: number
  head: string
  /** State hash at the head. */
  state: string
  /** Digest of the thread as HarnessState. */
  harness_state: string
  quarantine: { version: number; code: string } | null
  /** State hash behind each event. */
  states: string[]
}

interface Manifest extends Omit<Outcome, 'states'> {
  name: string
  fold_version: number
  /** Version of the package that wrote the records. */
  package: string
  stream: string
}

export interface RecordedLog {
  /** `<fold version>/<name>` */
  readonly id: string
  readonly manifest: Manifest
  readonly records: readonly RecordedEvent[]
  readonly outcome: Outcome
}

/** The records as a log gives them back, from their wire bytes. */
export const recordsFrom = (wire: readonly Uint8Array[]): RecordedEvent[] =>
  wire.map((bytes, i) => {
    const event: LogEvent = decodeEvent(bytes)
    const { stream, version, hash } = event
    return { stream, version, hash, bytes, event, position: { partition: 0, offset: BigInt(i + 1) } }
  })

/** The commits the records were accepted in. */
export function commitsOf(records: readonly RecordedEvent[]): Commit[] {
  const commits: (Commit & { records: Commit['records'][number][] })[] = []
  for (const { stream, version, hash, bytes, event } of records) {
    const { commit, previous } = event!
    if (commit.index === 0) commits.push({ id: commit.id, stream, base: commit.base, previous, records: [] })
    commits.at(-1)!.records.push({ version, hash, bytes, event: event! })
  }
  return commits
}

/** Folds the records, and every prefix of them. */
export function outcomeOf(records: readonly RecordedEvent[]): Outcome {
  const { state, head, quarantine } = foldStream(records)
  const states = records.map((_, i) => stateHash(foldStream(records.slice(0, i + 1)).state))
  return {
    events: records.length,
    head: head.hash,
    state: stateHash(state),
    harness_state: jsonDigest(harnessStateJson(state)),
    quarantine: quarantine ? { version: quarantine.version, code: quarantine.code } : null,
    states,
  }
}

/** The file of a log. */
export function print(name: string, records: readonly RecordedEvent[], release: string): string {
  const { states, ...outcome } = outcomeOf(records)
  const manifest: Manifest = { name, fold_version: FOLD_VERSION, package: release, stream: records[0]?.stream ?? '', ...outcome }
  const lines = records.map(({ bytes }, i) => ({ bytes: Buffer.from(bytes).toString('base64'), state: states[i] }))
  return [{ manifest }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('')
}

function parse(id: string, text: string): RecordedLog {
  const [first, ...lines] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const { manifest } = first as { manifest: Manifest }
  const { name: _, fold_version: __, package: ___, stream: ____, ...rest } = manifest
  const records = recordsFrom(lines.map(({ bytes }) => new Uint8Array(Buffer.from(bytes, 'base64'))))
  return { id, manifest, records, outcome: { ...rest, states: lines.map(({ state }) => state) } }
}

/** Every recorded log of every fold version up to `last`. */
export function readLogs(directory: URL = recordedLogs, last = FOLD_VERSION): RecordedLog[] {
  if (!existsSync(directory)) return []
  return readdirSync(directory)
    .filter((version) => Number(version) <= last)
    .sort((a, b) => Number(a) - Number(b))
    .flatMap((version) =>
      readdirSync(new URL(`${version}/`, directory))
        .filter((file) => file.endsWith('.ndjson'))
        .sort()
        .map((file) => {
          const id = `${version}/${file.slice(0, -'.ndjson'.length)}`
          return parse(id, readFileSync(new URL(`${id}.ndjson`, directory), 'utf8'))
        }),
    )
}

/** What a log must fold to under this fold version; undefined if nobody has recorded it. */
export function expected(log: RecordedLog, directory: URL = recordedLogs): Outcome | undefined {
  return log.manifest.fold_version === FOLD_VERSION ? log.outcome : refolded(directory)[log.id]
}

const refoldedFile = (directory: URL): URL => new URL(`${FOLD_VERSION}/refolded.json`, directory)

const refolded = (directory: URL): Record<string, Outcome> => {
  const file = refoldedFile(directory)
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
}

/**
 * Writes logs of this fold version, and what the logs of earlier ones fold to under it. A file that is there stays as it is, unless
 * nothing of this fold version has been released.
 */
export function writeLogs(
  logs: ReadonlyMap<string, string>,
  o: { directory?: URL; unreleased?: boolean } = {},
): { written: string[]; kept: string[] } {
  const { directory = recordedLogs, unreleased = false } = o
  const written: string[] = []
  const kept: string[] = []
  mkdirSync(new URL(`${FOLD_VERSION}/`, directory), { recursive: true })
  for (const [name, content] of logs) {
    const file = new URL(`${FOLD_VERSION}/${name}.ndjson`, directory)
    const keep = existsSync(file) && !unreleased
    if (!keep) writeFileSync(file, content)
    ;(keep ? kept : written).push(name)
  }
  const known = unreleased ? {} : refolded(directory)
  const missing = readLogs(directory, FOLD_VERSION - 1).filter((log) => !known[log.id])
  if (missing.length === 0) return { written, kept }
  const added = Object.fromEntries(missing.map((log) => [log.id, outcomeOf(log.records)]))
  writeFileSync(refoldedFile(directory), `${JSON.stringify({ ...known, ...added }, null, 1)}\n`)
  return { written: [...written, ...missing.map((log) => log.id)], kept }
}
