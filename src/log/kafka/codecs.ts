import { zstdDecompressSync } from 'node:zlib'
import kafkajs from 'kafkajs'

// kafkajs reads gzip only, and a batch it cannot read holds up its partition for ever. Producers in other languages use all of these.

const { CompressionCodecs, CompressionTypes } = kafkajs

type Decompress = (bytes: Buffer) => Buffer

/** Teaches kafkajs the codecs it lacks; leaves those that somebody else has taught it. */
export function installCodecs(): void {
  const codecs = CompressionCodecs as Record<number, () => unknown>
  for (const [type, decompress] of [
    [CompressionTypes.Snappy, snappy],
    [CompressionTypes.LZ4, lz4],
    [CompressionTypes.ZSTD, zstdDecompressSync],
  ] as [number, Decompress][])
    try {
      codecs[type]?.()
    } catch {
      codecs[type] = () => ({ compress, decompress: async (bytes: Buffer) => decompress(bytes) })
    }
}

/** This package sends nothing compressed: a commit must look the same to every reader, whatever codecs it has. */
async function compress(): Promise<Buffer> {
  throw new Error('this codec is only read')
}

/** Magic of the framing that Java clients put around snappy blocks. */
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const XERIAL_HEAD = 16

export function snappy(bytes: Buffer): Buffer {
  if (!bytes.subarray(0, XERIAL.length).equals(XERIAL)) return snappyBlock(bytes)
  const blocks: Buffer[] = []
  for (let at = XERIAL_HEAD; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at)
    blocks.push(snappyBlock(bytes.subarray(at + 4, at + 4 + size)))
    at += 4 + size
  }
  return Buffer.concat(blocks)
}

/** One block of https://github.com/google/snappy/blob/main/format_description.txt */
function snappyBlock(bytes: Buffer): Buffer {
  let at = 0
  let size = 0
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++]!
    size += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) break
  }
  const out = new Output(size)
  while (at < bytes.length) {
    const tag = bytes[at++]!
    const kind = tag & 3
    if (kind === 0) {
      let length = tag >> 2
      if (length >= 60) {
        const width = length - 59
        length = bytes.readUIntLE(at, width)
        at += width
      }
      out.literal(bytes, at, length + 1)
      at += length + 1
    } else if (kind === 1) out.copy(((tag >> 5) << 8) | bytes[at++]!, ((tag >> 2) & 7) + 4)
    else {
      const width = kind === 2 ? 2 : 4
      out.copy(bytes.readUIntLE(at, width), (tag >> 2) + 1)
      at += width
    }
  }
  return out.whole()
}

const LZ4_MAGIC = 0x184d2204

/** Frames of https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md; checksums are the broker's and TCP's affair. */
export function lz4(bytes: Buffer): Buffer {
  const out = new Output(bytes.length * 4)
  for (let at = 0; at < bytes.length; ) {
    if (bytes.readUInt32LE(at) !== LZ4_MAGIC) throw new Error('not an LZ4 frame')
    const flags = bytes[at + 4]!
    // Magic, flags, block size, the size of the content if it is given, a dictionary's id, checksum of this head.
    at += 7 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0)
    for (;;) {
      const head = bytes.readUInt32LE(at)
      at += 4
      if (head === 0) break
      const size = head & 0x7fffffff
      if (head > 0x7fffffff) out.literal(bytes, at, size)
      else lz4Block(bytes.subarray(at, at + size), out)
      at += size + (flags & 16 ? 4 : 0)
    }
    if (flags & 4) at += 4
  }
  return out.whole()
}

function lz4Block(bytes: Buffer, out: Output): void {
  let at = 0
  const more = (length: number) => {
    if (length < 15) return length
    for (let byte = 255; byte === 255; length += byte) byte = bytes[at++]!
    return length
  }
  while (at < bytes.length) {
    const token = bytes[at++]!
    const length = more(token >> 4)
    out.literal(bytes, at, length)
    at += length
    // The last sequence has no copy.
    if (at >= bytes.length) return
    const distance = bytes.readUInt16LE(at)
    at += 2
    out.copy(distance, more(token & 15) + 4)
  }
}

/** Most bytes one batch may grow to. */
const MOST = 256 * 1024 * 1024

/** Bytes that are written, and copied from what was written. */
class Output {
  #bytes: Buffer
  #end = 0

  constructor(size: number) {
    if (size > MOST) throw new Error('a batch is too large')
    this.#bytes = Buffer.allocUnsafe(size)
  }

  #room(length: number): void {
    const wanted = this.#end + length
    if (wanted <= this.#bytes.length) return
    if (wanted > MOST) throw new Error('a batch is too large')
    const grown = Buffer.allocUnsafe(Math.max(wanted, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#end)
    this.#bytes = grown
  }

  literal(from: Buffer, at: number, length: number): void {
    if (at + length > from.length) throw new Error('a compressed batch ends early')
    this.#room(length)
    from.copy(this.#bytes, this.#end, at, at + length)
    this.#end += length
  }

  /** The two may overlap: then what is written is read again. */
  copy(distance: number, length: number): void {
    if (distance === 0 || distance > this.#end) throw new Error('a compressed batch refers to what is not there')
    this.#room(length)
    for (let i = 0; i < length; i++, this.#end++) this.#bytes[this.#end] = this.#bytes[this.#end - distance]!
  }

  whole(): Buffer {
    return this.#bytes.subarray(0, this.#end)
  }
}
