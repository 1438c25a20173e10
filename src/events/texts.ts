// The same few texts stand in every event: types, names, ids. Each is made once and found again by its bytes, which is cheaper than
// making it, and takes the memory once. The table is bounded: a later text takes the place of an earlier.

const LONGEST = 48
const SLOTS = 1024

const texts: (string | undefined)[] = new Array(SLOTS)

type Slicing = (this: Uint8Array, start: number, end: number) => string
const { utf8Slice, hexSlice } = Buffer.prototype as unknown as { utf8Slice: Slicing; hexSlice: Slicing }

/** The text of UTF-8 bytes within `bytes`; broken UTF-8 comes out with replacement characters. */
export function shortText(bytes: Uint8Array, start: number, length: number): string {
  if (length === 0) return ''
  if (length > LONGEST) return utf8Slice.call(bytes, start, start + length)
  const slot = slotOf(bytes, start, length)
  const known = texts[slot]
  if (known !== undefined && isAscii(known, bytes, start, length)) return known
  return (texts[slot] = utf8Slice.call(bytes, start, start + length))
}

const slotOf = (bytes: Uint8Array, start: number, length: number): number => {
  const end = start + length - 1
  const [first, middle, last] = [bytes[start]!, bytes[start + (length >> 1)]!, bytes[end]!]
  return (length * 7 + first * 31 + middle * 131 + last * 523) % SLOTS
}

/** True when the bytes are ASCII and spell `text`. Other texts are made anew each time. */
function isAscii(text: string, bytes: Uint8Array, start: number, length: number): boolean {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i] as number
    if (byte > 0x7f || text.charCodeAt(i) !== byte) return false
  }
  return true
}

/** Lower-case hex of `size` bytes within `bytes`; finding one again would cost more than making it. */
export const hexText = (bytes: Uint8Array, start: number, size: number): string => hexSlice.call(bytes, start, start + size)
