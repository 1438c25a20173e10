import { type ContentRef, REFERENCE_MARK, sha256Hex } from '../../base/index.ts'
import { partitionOf } from '../partition.ts'
import type { ContentStore, TopicRecord } from '../ports.ts'
import { type Connection, chunksOf, type LogContent } from '../store/index.ts'
import type { DirectReader, RawRecord } from './direct.ts'
import { closed } from './errors.ts'

/** Beside the content of a replica: how far each partition of the topic has been read. */
export const CONTENT_PROGRESS = 'CREATE TABLE IF NOT EXISTS content_read(partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);'

/** Chunks of one send: together they stay below what a broker takes as one batch. */
const TOGETHER = 3
const FETCH = { maxWaitMs: 100, maxBytes: 4 << 20, committed: false }
const PART = 'part'

export interface ContentTopicParts {
  reader: DirectReader
  connection: Connection
  /** Full name of the topic. */
  topic: string
  partitions: number
  submit(run: () => void): Promise<void>
  /** The table of the replica. */
  table(): LogContent
}

/** Resolves when the records are durable. */
type Publish = (records: readonly TopicRecord[]) => Promise<unknown>

/**
 * Content on a topic: the chunks of one stand in order in the partition of their key. Nobody follows the topic: who meets a reference to
 * what its replica lacks reads on from where it stopped, to the end. Content is written before what refers to it, so it is there by then.
 */
export class ContentTopic implements ContentStore {
  readonly #o: ContentTopicParts
  readonly #reading = new Map<number, Promise<void>>()
  #publish: Publish = () => Promise.reject(closed())

  constructor(parts: ContentTopicParts) {
    this.#o = parts
  }

  /** What is put goes out by `publish`. */
  publishBy(publish: Publish): void {
    this.#publish = publish
  }

  async put(bytes: Uint8Array, mediaType: string): Promise<ContentRef> {
    const digest = sha256Hex(bytes)
    const chunks = chunksOf(bytes).map((value, part) => ({ key: keyOf(digest), value, headers: { [PART]: String(part) } }))
    for (let i = 0; i < chunks.length; i += TOGETHER) await this.#publish(chunks.slice(i, i + TOGETHER))
    return { digest, size: bytes.byteLength, media_type: mediaType }
  }

  /** Reads on to the end of the partition where the content would stand. */
  async get({ digest }: ContentRef): Promise<undefined> {
    const partition = partitionOf(keyOf(digest), this.#o.partitions)
    // What is being read may have asked for the end before this content was written.
    await this.#reading.get(partition)?.catch(() => {})
    let reading = this.#reading.get(partition)
    if (!reading) {
      reading = this.#read(partition).finally(() => this.#reading.delete(partition))
      this.#reading.set(partition, reading)
    }
    await reading
  }

  async #read(partition: number): Promise<void> {
    const { reader, connection, topic } = this.#o
    const offset = async (which: 'first' | 'end') =>
      (await reader.patiently(() => reader.offsets(topic, [partition], which))).get(partition) ?? 0n
    const [first, end] = [await offset('first'), await offset('end')]
    const row = connection.look(() =>
      connection.get<{ next: number }>('SELECT next FROM content_read WHERE partition = ?', partition),
    )
    for (let next = later(BigInt(row?.next ?? 0), first); next < end; ) {
      const ask = { topic, partition, offset: next }
      const batch = await reader.patiently(() => reader.fetchOne(ask, FETCH))
      await this.#o.submit(() => this.#store(partition, batch.records, batch.next))
      next = batch.next
    }
  }

  #store(partition: number, records: readonly RawRecord[], next: bigint): void {
    for (const record of records) {
      const chunk = chunkOf(record)
      if (chunk) this.#o.table().storeChunk(chunk.digest, chunk.part, chunk.bytes)
    }
    this.#o.connection.run(
      'INSERT INTO content_read(partition, next) VALUES (?, ?) ON CONFLICT DO UPDATE SET next = max(next, excluded.next)',
      partition,
      Number(next),
    )
  }
}

const later = (a: bigint, b: bigint): bigint => (a > b ? a : b)

const keyOf = (digest: string): string => `content/${digest}`

/** What is no chunk is passed over. */
function chunkOf({ key, value, headers }: RawRecord): { digest: string; part: number; bytes: Uint8Array } | undefined {
  const digest = key && /^content\/([0-9a-f]{64})$/.exec(Buffer.from(key).toString('latin1'))?.[1]
  const part = Number(headers[PART] ?? Number.NaN)
  return digest && value && Number.isSafeInteger(part) && part >= 0 ? { digest, part, bytes: new Uint8Array(value) } : undefined
}

const REFERENCE = /^\{"\$content":\{"digest":"([0-9a-f]{64})","media_type":"[^"]{0,200}","size":(\d{1,15})\}\}/

/** What may be references in the bytes of a record, whether or not this build can read it. */
export function referencesIn(bytes: Uint8Array): ContentRef[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const found: ContentRef[] = []
  for (let at = buffer.indexOf(REFERENCE_MARK); at >= 0; at = buffer.indexOf(REFERENCE_MARK, at + 1)) {
    const [, digest, size] = REFERENCE.exec(buffer.toString('latin1', at, at + 512)) ?? []
    if (digest && size) found.push({ digest, size: Number(size), media_type: '' })
  }
  return found
}
