import { hash as digest } from 'node:crypto'
import { fatal, type ThreadlogError } from '../base/index.ts'
import type { EventHash } from './envelope.ts'

// Confluent wire format: 0x00, schema id as 4 bytes big endian, Avro body.

/** Bytes before the body. */
export const FRAMING = 5

/** The same memory as a Buffer. */
export const bufferOf = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** @throws ThreadlogError `event_undecodable` (framing) */
export function readSchemaId(record: Uint8Array): number {
  if (record.length < FRAMING || record[0] !== 0) throw undecodable('framing', 'it does not begin with 0x00 and a schema id')
  return ((record[1]! << 24) | (record[2]! << 16) | (record[3]! << 8) | record[4]!) >>> 0
}

export function writeFraming(record: Buffer, schemaId: number): void {
  record[0] = 0
  record.writeUInt32BE(schemaId, 1)
}

/** SHA-256 of the body, without the framing. */
export const bodyHash = (record: Uint8Array): EventHash => digest('sha256', record.subarray(FRAMING), 'hex')

/** Why a record cannot be read. Says where it failed, never what stood there. */
export const undecodable = (
  reason: 'framing' | 'unknown-schema' | 'body' | 'upcast',
  why: string,
  schemaId?: number,
): ThreadlogError =>
  fatal('event_undecodable', `The record is not a readable event: ${why}.`, { details: { reason, schema_id: schemaId ?? null } })
