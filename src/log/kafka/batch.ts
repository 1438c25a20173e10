// The wire form of what is produced, made once: kafkajs makes it eight times, each record, batch, partition and topic in a buffer of
// its own that the next one copies.

/** As kafkajs takes it. */
export interface Message {
  key?: Buffer | string | null
  value: Buffer | string | null
  headers?: Readonly<Record<string, Buffer | string | readonly (Buffer | string)[] | undefined>>
  timestamp?: string
}

interface Long {
  toString(): string
}

/** What kafkajs gives its own encoder of a produce request, versions 3 to 8. */
export interface ProduceArguments {
  acks: number
  timeout: number
  transactionalId?: string | null
  producerId?: Long | number | string
  producerEpoch?: number
  compression?: number
  topicData: readonly {
    topic: string
    partitions: readonly { partition: number; firstSequence?: number; messages: readonly Message[] }[]
  }[]
}

/** Bytes of a batch before its records, and where in it its checksum and what that covers begin. */
const BATCH_HEAD = 61
const CRC_AT = 17
const COVERED_AT = 21
const MAGIC = 2
const TRANSACTIONAL = 16

/** The body of a produce request. @see https://kafka.apache.org/protocol.html#The_Messages_Produce */
export function encodeProduce(args: ProduceArguments, now = Date.now()): Buffer {
  const { acks, timeout, transactionalId, topicData } = args
  const topics = topicData.map(({ topic, partitions }) => ({
    topic,
    batches: partitions.map((each) => ({ ...each, ...recordsOf(each.messages, now) })),
  }))
  let size = 2 + textSize(transactionalId) + 2 + 4 + 4
  for (const { topic, batches } of topics) {
    size += 2 + textSize(topic) + 4
    for (const { bytes } of batches) size += 8 + BATCH_HEAD + bytes
  }
  const out = new Writer(size)
  out.text(transactionalId)
  out.int16(acks)
  out.int32(timeout)
  out.int32(topics.length)
  for (const { topic, batches } of topics) {
    out.text(topic)
    out.int32(batches.length)
    for (const batch of batches) {
      out.int32(batch.partition)
      out.int32(BATCH_HEAD + batch.bytes)
      writeBatch(out, batch, args)
    }
  }
  return out.whole()
}

interface Batch extends Records {
  firstSequence?: number
}

function writeBatch(out: Writer, { records, first, last, firstSequence = 0 }: Batch, args: ProduceArguments): void {
  const start = out.at
  out.int64(0n)
  const length = out.at
  out.int32(0)
  out.int32(0)
  out.int8(MAGIC)
  out.int32(0)
  out.int16(args.transactionalId ? TRANSACTIONAL : 0)
  out.int32(records.length - 1)
  out.int64(BigInt(first))
  out.int64(BigInt(last))
  out.int64(BigInt(String(args.producerId ?? -1)))
  out.int16(args.producerEpoch ?? 0)
  out.int32(firstSequence)
  out.int32(records.length)
  for (const [i, record] of records.entries()) writeRecord(out, record, i, first)
  out.setInt32(length, out.at - length - 4)
  out.setInt32(start + CRC_AT, crc32c(out.written(start + COVERED_AT)))
}

interface Encoded {
  /** Bytes behind its length. */
  readonly body: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly [name: Buffer, value: Buffer][]
  readonly time: number
}

interface Records {
  readonly records: readonly Encoded[]
  /** Bytes of all records. */
  readonly bytes: number
  /** Epoch milliseconds. */
  readonly first: number
  readonly last: number
}

function recordsOf(messages: readonly Message[], now: number): Records {
  const times = messages.map(({ timestamp }) => (timestamp === undefined ? now : Number(timestamp)))
  const [first, last] = [Math.min(...times), Math.max(...times)]
  let bytes = 0
  const records = messages.map((message, i) => {
    const key = bytesOf(message.key)
    const value = bytesOf(message.value)
    const headers = headersOf(message.headers)
    const time = times[i] as number
    let body = 1 + varintSize(time - first) + varintSize(i) + fieldSize(key) + fieldSize(value) + varintSize(headers.length)
    for (const [name, held] of headers) body += fieldSize(name) + fieldSize(held)
    bytes += varintSize(body) + body
    return { body, key, value, headers, time }
  })
  return { records, bytes, first, last }
}

function writeRecord(out: Writer, { body, key, value, headers, time }: Encoded, delta: number, first: number): void {
  out.varint(body)
  out.int8(0)
  out.varint(time - first)
  out.varint(delta)
  out.field(key)
  out.field(value)
  out.varint(headers.length)
  for (const [name, held] of headers) {
    out.field(name)
    out.field(held)
  }
}

function headersOf(headers: Message['headers'] = {}): [Buffer, Buffer][] {
  return Object.entries(headers).flatMap(([name, held]) =>
    (Array.isArray(held) ? held : [held]).map((each): [Buffer, Buffer] => [Buffer.from(name), bytesOf(each) ?? Buffer.alloc(0)]),
  )
}

const bytesOf = (held: Buffer | string | null | undefined): Buffer | null =>
  held === null || held === undefined ? null : typeof held === 'string' ? Buffer.from(held) : held

const textSize = (text: string | null | undefined): number => (text ? Buffer.byteLength(text) : 0)
const fieldSize = (bytes: Buffer | null): number => (bytes === null ? 1 : varintSize(bytes.length) + bytes.length)

/** Bytes of a signed number in the zigzag form of varints. */
function varintSize(number: number): number {
  let left = number < 0 ? -number * 2 - 1 : number * 2
  let size = 1
  for (; left >= 0x80; left = Math.floor(left / 0x80)) size++
  return size
}

class Writer {
  at = 0
  readonly #bytes: Buffer

  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafe(size)
  }

  int8(value: number): void {
    this.at = this.#bytes.writeInt8(value, this.at)
  }

  int16(value: number): void {
    this.at = this.#bytes.writeInt16BE(value, this.at)
  }

  int32(value: number): void {
    this.at = this.#bytes.writeInt32BE(value, this.at)
  }

  setInt32(at: number, value: number): void {
    this.#bytes.writeInt32BE(value | 0, at)
  }

  int64(value: bigint): void {
    this.at = this.#bytes.writeBigInt64BE(value, this.at)
  }

  /** With its length in two bytes; -1 for none. */
  text(text: string | null | undefined): void {
    this.int16(text ? Buffer.byteLength(text) : -1)
    if (text) this.at += this.#bytes.write(text, this.at)
  }

  varint(number: number): void {
    let left = number < 0 ? -number * 2 - 1 : number * 2
    for (; left >= 0x80; left = Math.floor(left / 0x80)) this.#bytes[this.at++] = (left % 0x80) | 0x80
    this.#bytes[this.at++] = left
  }

  /** With its length as a varint; -1 for none. */
  field(bytes: Buffer | null): void {
    this.varint(bytes === null ? -1 : bytes.length)
    if (bytes) this.at += bytes.copy(this.#bytes, this.at)
  }

  /** What was written from a place on. */
  written(from: number): Buffer {
    return this.#bytes.subarray(from, this.at)
  }

  whole(): Buffer {
    return this.#bytes.subarray(0, this.at)
  }
}

/** Castagnoli's polynomial, reversed. */
const POLYNOMIAL = 0x82f63b78
/** Eight tables: what a byte does to the checksum when 0 to 7 bytes follow it. */
const TABLES = crcTables()

function crcTables(): Int32Array[] {
  const tables = Array.from({ length: 8 }, () => new Int32Array(256))
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1
    tables[0]![byte] = crc
  }
  for (let byte = 0; byte < 256; byte++)
    for (let i = 1; i < 8; i++) {
      const crc = tables[i - 1]![byte]!
      tables[i]![byte] = (crc >>> 8) ^ tables[0]![crc & 0xff]!
    }
  return tables
}

/** The checksum of a batch, eight bytes at a time. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as [
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
    Int32Array,
  ]
  let crc = -1
  let at = 0
  for (const end = bytes.length - 7; at < end; at += 8) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
    crc =
      t7[crc & 0xff]! ^
      t6[(crc >>> 8) & 0xff]! ^
      t5[(crc >>> 16) & 0xff]! ^
      t4[crc >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!
  }
  for (; at < bytes.length; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 0xff]!
  return ~crc >>> 0
}
