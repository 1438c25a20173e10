import { type ContentPlace, type ContentRef, type LoadContent, reject, sha256Hex } from '../../base/index.ts'
import { payloadsOf } from '../../events/index.ts'
import type { ContentStore, RecordedEvent, Sql } from '../ports.ts'
import { Connection } from './connection.ts'

/** Largest content, in bytes. */
export const CONTENT_LIMIT = 64 * 1_048_576
/** Bytes of one row, and of one record of the topic. */
const CHUNK = 262_144

/** In chunks, numbered from 0. `digest` is that of the whole. */
export const CONTENT_TABLE = `
CREATE TABLE IF NOT EXISTS content(
  digest TEXT NOT NULL,
  part INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY(digest, part)
);`

/** The chunks of a content, views of it. */
export function chunksOf(bytes: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let start = 0; start === 0 || start < bytes.byteLength; start += CHUNK) chunks.push(bytes.subarray(start, start + CHUNK))
  return chunks
}

/** What the table has under a digest, whole and unchecked. */
function stored(sql: Sql, digest: string): Uint8Array | undefined {
  const rows = sql.all<{ bytes: Uint8Array }>('SELECT bytes FROM content WHERE digest = ? ORDER BY part', digest)
  if (rows.length === 0) return undefined
  return rows.length === 1 ? (rows[0] as { bytes: Uint8Array }).bytes : Buffer.concat(rows.map(({ bytes }) => bytes))
}

const loaders = new WeakMap<Sql, LoadContent>()

/** Loads from the table beside a log. */
export function contentLoader(sql: Sql): LoadContent {
  const known = loaders.get(sql)
  if (known) return known
  const load: LoadContent = (ref, at) => {
    const bytes = sql instanceof Connection ? sql.look(() => stored(sql, ref.digest)) : stored(sql, ref.digest)
    if (!bytes || bytes.byteLength < ref.size) throw missing(ref, at)
    if (bytes.byteLength !== ref.size || sha256Hex(bytes) !== ref.digest) throw corrupt(ref, at)
    return bytes
  }
  loaders.set(sql, load)
  return load
}

const details = ({ digest, size }: ContentRef, { stream, version }: ContentPlace) => ({ stream, version, digest, size })

const missing = (ref: ContentRef, at: ContentPlace) =>
  reject('content_missing', `A value of version ${at.version} of thread ${at.stream} is not in the content store.`, {
    hint: 'Bring the content back; `threadlog verify --all` finds what else is missing.',
    details: details(ref, at),
  })

const corrupt = (ref: ContentRef, at: ContentPlace) =>
  reject(
    'content_corrupt',
    `A value of version ${at.version} of thread ${at.stream} is not what was put into the content store.`,
    {
      hint: 'Bring the content back; `threadlog verify --all` finds what else is wrong.',
      details: details(ref, at),
    },
  )

/**
 * The content of one log. Everybody reads from the table beside the log. Where the truth is elsewhere (a topic, a host's store), the table
 * has a copy of what this log refers to.
 */
export class LogContent implements ContentStore {
  readonly #connection: Connection
  readonly #submit: (run: () => void) => Promise<void>
  readonly #elsewhere: ContentStore | undefined

  /** @param submit runs in the next write transaction */
  constructor(connection: Connection, submit: (run: () => void) => Promise<void>, elsewhere?: ContentStore) {
    this.#connection = connection
    this.#submit = submit
    this.#elsewhere = elsewhere
  }

  async put(bytes: Uint8Array, mediaType: string): Promise<ContentRef> {
    const ref = { digest: sha256Hex(bytes), size: bytes.byteLength, media_type: mediaType }
    if (ref.size > CONTENT_LIMIT)
      throw reject('content_too_large', 'The value is larger than a content store takes.', {
        expected: `at most ${CONTENT_LIMIT} bytes`,
        details: { size: ref.size, limit: CONTENT_LIMIT },
      })
    // What stands here was put before, and where the truth is elsewhere, it was put there first.
    if (await this.#connection.query(() => this.has(ref))) return ref
    await this.#elsewhere?.put(bytes, mediaType)
    await this.#submit(() => this.store(ref.digest, bytes))
    return ref
  }

  async get(ref: ContentRef): Promise<Uint8Array | undefined> {
    await this.complete([ref])
    const bytes = await this.#connection.query(() => stored(this.#connection, ref.digest))
    return bytes?.byteLength === ref.size && sha256Hex(bytes) === ref.digest ? bytes : undefined
  }

  /** True if the table has all of it. */
  has({ digest, size }: ContentRef): boolean {
    const sql = 'SELECT sum(length(bytes)) AS size FROM content WHERE digest = ?'
    return this.#connection.get<{ size: number | null }>(sql, digest)?.size === size
  }

  /** Brings what the table lacks from where the truth is. What is not there either stays away. */
  async complete(refs: readonly ContentRef[]): Promise<void> {
    if (!this.#elsewhere) return
    for (const ref of refs) {
      if (this.#connection.look(() => this.has(ref))) continue
      const bytes = await this.#elsewhere.get(ref)
      if (bytes && sha256Hex(bytes) === ref.digest && !this.#connection.look(() => this.has(ref)))
        await this.#submit(() => this.store(ref.digest, bytes))
    }
  }

  /** As {@link complete}, for what recorded events refer to. */
  async completeFor(records: readonly RecordedEvent[]): Promise<void> {
    if (this.#elsewhere)
      await this.complete(
        records.flatMap(({ event }) => (event ? payloadsOf(event.type, event.data) : []).flatMap(({ kept }) => kept?.ref ?? [])),
      )
  }

  /** Writes the rows of a content. Only inside the writer's transaction. */
  store(digest: string, bytes: Uint8Array): void {
    this.#connection.run('DELETE FROM content WHERE digest = ?', digest)
    for (const [part, chunk] of chunksOf(bytes).entries()) this.storeChunk(digest, part, chunk)
  }

  /** Writes one row, unless there is one. Only inside the writer's transaction. */
  storeChunk(digest: string, part: number, bytes: Uint8Array): void {
    this.#connection.run('INSERT OR IGNORE INTO content(digest, part, bytes) VALUES (?, ?, ?)', digest, part, bytes)
  }

  /** A log opened for looking refuses what is put. */
  readOnly(): ContentStore {
    return {
      put: async () => {
        throw reject('log_read_only', 'The log was opened read-only.', { hint: 'Open it for writing.' })
      },
      get: (ref) => this.get(ref),
    }
  }
}
