import type { LogEvent } from '../../../src/events/index.ts'
import type { LogBackend, RecordedEvent } from '../../../src/log/index.ts'

/** Keys of all streams of a file. */
export const streamsOf = (backend: LogBackend): string[] =>
  backend.tables.all<{ key: string }>('SELECT lower(hex(key)) AS key FROM streams ORDER BY id').map((row) => row.key)

export async function recordsOf(backend: LogBackend, stream: string): Promise<RecordedEvent[]> {
  const records: RecordedEvent[] = []
  for await (const batch of backend.events.read(stream)) records.push(...batch)
  return records
}

export async function eventsOf(backend: LogBackend, stream: string): Promise<LogEvent[]> {
  return (await recordsOf(backend, stream)).map((record) => record.event as LogEvent)
}
