import { type LoadContent, sha256Hex } from '../../base/index.ts'
import { decodeEvent, type LogEvent, type StreamKey } from '../../events/index.ts'
import type { Position, RecordedEvent } from '../ports.ts'

/** Bytes of Confluent framing before the hashed body: 0x00 and the schema id. */
const FRAMING = 5

/** The one partition of an embedded log. */
export const PARTITION = 0

export interface EventRow {
  id: number
  version: number
  value: Uint8Array
  /** Absent in a log, whose ids are its offsets. */
  place: number | null
}

/** The columns of a stored event, in this order. */
export type StoredEvent = [id: number, version: number, value: Uint8Array, place: number | null]

/** Offsets of one partition below this fit in a place. */
const OFFSETS = 2 ** 40

/** Partition and offset as one number, as a replica stores them. Partitions stay below 8,192, offsets below 2^40. */
export const placeOf = (partition: number, offset: bigint | number): number => partition * OFFSETS + Number(offset)

/** Where an event stands in its log. */
export const positionOf = ({ id, place }: { id: number; place: number | null }): Position =>
  place === null
    ? { partition: PARTITION, offset: BigInt(id) }
    : { partition: Math.floor(place / OFFSETS), offset: BigInt(place % OFFSETS) }

export const keyBytes = (stream: StreamKey): Uint8Array => Buffer.from(stream, 'hex')

/** SQLite holds in a BLOB column whatever it is given: what somebody wrote there by hand as text is bytes that are no event. */
const bytesOf = (value: unknown): Uint8Array => (value instanceof Uint8Array ? value : Buffer.from(String(value)))

/** Hash of a stored event's body; needs no schema, so it exists for events this build cannot decode. */
export const bodyHash = (value: Uint8Array): string => sha256Hex(bytesOf(value).subarray(FRAMING))

/** A stored row as the port shows it; values it refers to are loaded by `load`. A row this build cannot decode, or that stands where it does not belong, carries a defect. */
export function fromRow(
  load: LoadContent,
  stream: StreamKey,
  [id, version, value, place]: readonly [...StoredEvent, ...unknown[]],
  lasting = true,
): RecordedEvent {
  const bytes = bytesOf(value)
  const position = positionOf({ id, place })
  let event: LogEvent
  try {
    event = decodeEvent(bytes, lasting, load)
  } catch (error) {
    return { stream, version, hash: bodyHash(bytes), position, bytes, defect: defectOf(error) }
  }
  const { hash } = event
  if (event.stream === stream && event.version === version) return { stream, version, hash, position, bytes, event }
  const message = 'The event names another stream or version than the place it stands at.'
  return { stream, version, hash, position, bytes, defect: { code: 'event_misplaced', message } }
}

function defectOf(error: unknown): { code: string; message: string } {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return {
    code: typeof code === 'string' ? code : 'event_undecodable',
    message: typeof message === 'string' ? message : 'The bytes are not an event.',
  }
}
