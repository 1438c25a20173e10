import { reject } from '../base/index.ts'
import { COMMIT_LIMITS, type Commit } from '../events/index.ts'

/**
 * Refuses, before anything is sent, a commit no log would ever accept.
 * @throws ThreadlogError `commit_empty`, `commit_too_large` (with the limit), `commit_malformed` (with the record's index)
 */
export function checkCommit(commit: Commit): void {
  const { records } = commit
  if (records.length === 0) throw reject('commit_empty', 'A commit holds at least one event.', { path: '$.records' })
  let bytes = 0
  for (const record of records) bytes += record.bytes.length
  if (records.length > COMMIT_LIMITS.records || bytes > COMMIT_LIMITS.bytes)
    throw reject('commit_too_large', 'The commit is larger than any log accepts.', {
      path: '$.records',
      expected: `at most ${COMMIT_LIMITS.records} records and ${COMMIT_LIMITS.bytes} bytes`,
      hint: 'Store large values apart, or decide fewer events at once.',
      details: { records: records.length, bytes, limit_records: COMMIT_LIMITS.records, limit_bytes: COMMIT_LIMITS.bytes },
    })
  let previous = commit.previous
  for (const [index, record] of records.entries()) {
    const { event } = record
    const fits =
      event.stream === commit.stream &&
      event.commit.id === commit.id &&
      event.commit.base === commit.base &&
      event.commit.index === index &&
      event.commit.size === records.length &&
      event.version === commit.base + index + 1 &&
      record.version === event.version &&
      event.previous === previous &&
      event.hash === record.hash
    if (!fits) throw reject('commit_malformed', 'A record does not belong to its commit.', { path: `$.records[${index}]` })
    previous = record.hash
  }
}
