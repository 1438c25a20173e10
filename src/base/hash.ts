import { hash } from 'node:crypto'
import { canonicalJson, type JsonValue } from './json.ts'

/** SHA-256 of bytes or of UTF-8 text, as lower-case hex. */
export const sha256Hex = (data: string | Uint8Array): string => hash('sha256', data, 'hex')

/** SHA-256 as 32 bytes. */
export const sha256 = (data: string | Uint8Array): Uint8Array => hash('sha256', data, 'buffer')

/** Digest of a JSON value: lower-case hex SHA-256 of its canonical text (design §6 "Digest"). */
export const jsonDigest = (value: JsonValue): string => sha256Hex(canonicalJson(value))
