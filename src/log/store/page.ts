import type { Connection } from './connection.ts'
import type { StoredEvent } from './records.ts'

/**
 * One page of the log in one row: lists of its columns, and its values one behind the other. A row and a blob for each event would cost
 * twice as much to hand over.
 */
const PAGE = `
SELECT json_group_array(id) AS ids, json_group_array(version) AS versions, json_group_array(place) AS places,
  json_group_array(stream) AS streams, json_group_array(length(value)) AS sizes, CAST(group_concat(value, '') AS BLOB) AS bytes
FROM (
  SELECT id, version, place, stream, CAST(value AS BLOB) AS value FROM events WHERE id >= ? ORDER BY id LIMIT ?
)`

interface PageRow {
  ids: string
  versions: string
  places: string
  streams: string
  sizes: string
  /** Null for an empty page. */
  bytes: Uint8Array | null
}

/** Events with ids from `id` on, in order; their values are views of one buffer. */
export function pageOf(connection: Connection, id: number, limit: number): [...StoredEvent, sid: number][] {
  const { ids, versions, places, streams, sizes, bytes } = connection.get<PageRow>(PAGE, id, limit) as PageRow
  if (bytes === null) return []
  const [id_, version, place, stream, size] = [ids, versions, places, streams, sizes].map(
    (list) => JSON.parse(list) as number[],
  ) as [number[], number[], (number | null)[], number[], number[]]
  let end = bytes.byteOffset
  return id_.map((id, i) => {
    const start = end
    end += size[i] as number
    const value = new Uint8Array(bytes.buffer, start, size[i])
    return [id, version[i] as number, value, place[i] as number | null, stream[i] as number]
  })
}
