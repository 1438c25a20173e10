/** A column of a view: its name, and where it stands in the JSON value. */
type Columns = Record<string, string>

/**
 * A topic as a view: offset, time (epoch milliseconds), key, value (JSON text), and the named parts of the value. Parts of a value that
 * is not JSON are null.
 */
const view = (topic: string, columns: Columns): string => `
CREATE VIEW threadlog_${topic} AS
SELECT offset, time, key, ${Object.entries(columns)
  .map(([name, path]) => `json_extract(json, '${path}') AS ${name}, `)
  .join('')}value
FROM (
  SELECT offset, time, key, CAST(value AS TEXT) AS value,
    CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS json
  FROM ${topic}
);`

const same = (...names: string[]): Columns => Object.fromEntries(names.map((name) => [name, `$.${name}`]))

const address = ['application_id', 'provider', 'external_id', 'continuation_id', 'result_id', 'schema_id', 'proposal_digest']

/** Epoch milliseconds; `unixepoch('subsec')` is missing in SQLite before 3.42. */
const NOW = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`

/**
 * What other programs see, in any language, with SQLite 3.38 or newer. A stable contract: columns are added, never changed.
 * Only `threadlog_results` takes inserts, of `value` and optionally `key`; the bytes given are kept as they are, and judged later.
 */
export const VIEWS = `
${view('requests', {
  ...same('continuation_id', 'application_id', 'provider', 'capability', 'external_id', 'schema_id', 'tool', 'arguments'),
  ...same('idempotency_key', 'proposal_digest', 'deadline', 'cancelled', 'stream', 'version'),
})}
${view('results', same(...address))}
${view('receipts', {
  ...same('verdict', 'final', 'sequence', 'provider', 'external_id', 'continuation_id', 'result_id'),
  source_topic: '$.source.topic',
  source_partition: '$.source.partition',
  source_offset: '$.source.offset',
  source_command_id: '$.source.command_id',
})}
${view('checkpoints', same('application_id', 'user_id', 'thread_id', 'run_id', 'status', 'stream', 'version'))}
CREATE TRIGGER threadlog_results_insert INSTEAD OF INSERT ON threadlog_results BEGIN
  INSERT INTO results(key, value, time) VALUES (ifnull(CAST(NEW.key AS TEXT), ''), ifnull(CAST(NEW.value AS BLOB), x''), ${NOW});
END;
`
