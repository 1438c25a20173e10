import { MARKER } from './marker.ts'
import type { Random } from './random.ts'

/** Texts that have broken something somewhere. */
const STRANGE = [
  '',
  ' ',
  '\u0000',
  '\ufeff',
  '\u2028\u2029',
  '\ud800',
  '\udc00x',
  '\u202egnp',
  '\u001b[2J\u001b]0;t\u0007',
  'e\u0301\u00e9',
  '𝔘😀',
  '\ue000',
  '\ue0000',
  '%s%n%d',
  '../../etc/passwd',
  "'; DROP TABLE events; --",
  '__proto__',
  'constructor',
  'NaN',
  'null',
  '0',
  '-1',
  '\r\nx: y',
] as const

/** Keys with a meaning to JavaScript. */
const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'toJSON',
  'hasOwnProperty',
  'length',
  'valueOf',
  'then',
] as const

/** Numbers in spellings that may be kept. */
const NUMBERS = [
  '0',
  '-0',
  '-0.0',
  '1',
  '-1',
  '1.0',
  '1.5',
  '0.1e1',
  '1e2',
  '1E+2',
  '1e-7',
  '9007199254740991',
  '1e21',
  '1e22',
  '5e-324',
  '1e-400',
]
/** Numbers at the edge and beyond, and what only looks like a number. */
const NO_NUMBERS = [
  ...[
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '9007199254740991.4',
    '9007199254740993.0',
    '90071992547409930e-1',
  ],
  ...['1000000000000000000000', '1.7976931348623157e308', '1e309', '-1e309', '123456789012345678901234567890'],
  ...['00', '01', '+1', '.5', '1.', '0x10', '1_000', 'NaN', 'Infinity', '-Infinity', '1e', '--1'],
]

const numberText = (random: Random): string => random.pick(random.once(60) ? NO_NUMBERS : NUMBERS)

export const strangeText = (random: Random): string =>
  random.any(
    () => random.pick(STRANGE),
    () => `${random.pick(STRANGE)}${MARKER}${random.pick(STRANGE)}`,
    () => MARKER,
    () => 'abc',
    () => random.pick(KEYS),
    () => String.fromCharCode(...random.list(0, 12, () => random.below(65_536))),
    () => 'x'.repeat(random.size(2_000)),
  )

/** A JSON string literal; at times with escapes nobody needs, at times with what no string may hold. */
export function stringText(random: Random, text = strangeText(random)): string {
  const plain = JSON.stringify(text)
  if (random.once(6))
    return `"${[...text].map((char) => (random.once(2) && char.length === 1 ? unicodeEscape(char) : JSON.stringify(char).slice(1, -1))).join('')}"`
  if (random.once(300)) return `"${text}"`
  if (random.once(300)) return `${plain.slice(0, -1)}${random.pick(['\\x41', '\\u12', '\\', '\n', '\\ud83d'])}"`
  return plain
}

const unicodeEscape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

const space = (random: Random): string =>
  random.once(400)
    ? random.pick(['\u00a0', '/*c*/', '\ufeff', '\v'])
    : random.once(6)
      ? random.pick([' ', '\n', '\t', '\r\n'])
      : ''

/** JSON text by its grammar, with what is legal and strange, and at times with what is not legal. */
export function jsonText(random: Random, depth = 4): string {
  if (random.once(400)) return deepText(random)
  const leaf = depth <= 0 || random.once(2)
  if (leaf)
    return random.any(
      () => stringText(random),
      () => numberText(random),
      () => random.pick(['true', 'false', 'null']),
      () => random.pick(['{}', '[]', '""']),
    )
  const s = () => space(random)
  if (random.once(2)) return `[${s()}${random.list(0, 4, () => s() + jsonText(random, depth - 1)).join(',')}${s()}]`
  return objectText(
    random,
    random.list(0, 4, (): [string, string] => [keyText(random), jsonText(random, depth - 1)]),
  )
}

const keyText = (random: Random): string =>
  random.any(
    () => random.pick(KEYS),
    () => `k${random.below(3)}`,
    () => String(random.below(12)),
    () => strangeText(random),
    () => MARKER,
  )

/** An object of members whose values are JSON text; keys at times twice, escaped, or in another order. */
export function objectText(random: Random, members: readonly (readonly [string, string])[]): string {
  const shown = [...members]
  if (shown.length > 0 && random.once(30)) shown.push([random.pick(shown)[0], jsonText(random, 1)])
  if (random.once(4)) shown.sort(() => random.below(3) - 1)
  const text = shown
    .map(([key, value]) => `${space(random)}${stringText(random, key)}${space(random)}:${space(random)}${value}`)
    .join(',')
  return random.once(300) ? `{${text},}` : `{${text}}`
}

const deepText = (random: Random): string => {
  const depth = random.pick([100, 255, 256, 257, 300, 5_000])
  return random.any(
    () => '['.repeat(depth) + ']'.repeat(depth),
    () => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
    () => '['.repeat(depth),
  )
}

/** A text changed here and there. */
export function changedText(random: Random, text: string): string {
  for (let times = random.between(1, 3); times > 0; times--) {
    const at = random.below(text.length + 1)
    const end = Math.min(text.length, at + random.size(40))
    text = random.any(
      () => text.slice(0, at) + text.slice(end),
      () => text.slice(0, at),
      () =>
        text.slice(0, at) + random.pick(['"', '{', '}', '[', ']', ',', ':', '\\', '\u0000', ' ', '\ufeff', '0']) + text.slice(at),
      () => text.slice(0, at) + text.slice(at, end) + text.slice(at),
      () => text.slice(0, at) + jsonText(random, 1) + text.slice(end),
      () => `\ufeff${text}`,
      () => text + random.pick([' ', '\n', 'x', '\u0000', ',', '{}']),
    )
  }
  return text
}

/** Bytes (one character each) changed here and there. */
export function changedBytes(random: Random, bytes: string): string {
  for (let times = random.between(1, 3); times > 0; times--) {
    const at = random.below(bytes.length + 1)
    const end = Math.min(bytes.length, at + random.size(64))
    bytes = random.any(
      () => bytes.slice(0, at) + random.bytes(1) + bytes.slice(at + 1),
      () => bytes.slice(0, at) + String.fromCharCode(bytes.charCodeAt(at) ^ (1 << random.below(8)) || 0) + bytes.slice(at + 1),
      () => bytes.slice(0, at) + bytes.slice(end),
      () => bytes.slice(0, at),
      () =>
        bytes.slice(0, at) +
        random.pick(['\xff', '\xc0\x80', '\xed\xa0\x80', '\xf4\x90\x80\x80', '\xe2\x82', '\x00', '\x80']) +
        bytes.slice(at),
      () => bytes.slice(0, at) + '\x00'.repeat(end - at) + bytes.slice(end),
      () => bytes + random.bytes(random.size(20)),
    )
  }
  return bytes
}

/** UTF-8 bytes, one character each. */
export const bytesText = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
export const bytesOf = (bytes: string): Uint8Array => Uint8Array.from(Buffer.from(bytes, 'latin1'))
