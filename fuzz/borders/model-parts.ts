import { strangeText } from '../kit/json-text.ts'
import { MARKER } from '../kit/marker.ts'
import type { Random } from '../kit/random.ts'
import { changedValue, strangeValue } from '../kit/values.ts'

/** A stream part as JSON. Texts that begin with `$` stand for what JSON does not have, see {@link live}. */
export type PartJson = { [name: string]: unknown }

/** What a lawful stream says. */
export interface Said {
  texts: string[]
  calls: [id: string, name: string, args: string][]
}

export interface ModelCase {
  open: 'pull' | 'push' | 'rejects' | 'throws' | 'never' | 'undefined' | 'nothing' | 'locked' | 'odd-reader'
  parts: PartJson[]
  /** What follows the last part: an end, silence, a failure, or the parts again and again. */
  after: 'close' | 'hang' | 'fail' | 'forever'
  /** Which failure, see {@link failure}. */
  failure: number
  /** Milliseconds until the caller gives up; always set where the model would never end. */
  abortMs?: number
  /** Set when the stream keeps the rules: then it must come out as it went in. */
  said?: Said
  /** True: as a run on a log, with a second run after it. */
  run: boolean
}

const OPENINGS: readonly ModelCase['open'][] = ['rejects', 'throws', 'never', 'undefined', 'nothing', 'locked', 'odd-reader']

export function modelCase(random: Random): ModelCase {
  const run = random.once(6)
  if (random.once(3)) {
    const { parts, said } = lawful(random)
    return { open: random.pick(['pull', 'push']), parts, after: 'close', failure: 0, said, run }
  }
  if (random.once(12)) return endless(random, run)
  const lawless = random.once(3) ? lawful(random).parts : random.list(0, 12, () => anyPart(random))
  const parts = lawless.map((part) => (random.once(5) ? (changedValue(random, part) as PartJson) : part))
  const after = random.pick(['close', 'close', 'hang', 'fail', 'forever'] as const)
  const open = random.once(12) ? random.pick(OPENINGS) : random.pick(['pull', 'push'] as const)
  const lasting = after === 'hang' || after === 'forever' || open === 'never'
  const abortMs = lasting || random.once(10) ? random.pick([0, 1, 10, 40]) : undefined
  return { open, parts, after, failure: random.below(FAILURES), run, ...(abortMs === undefined ? {} : { abortMs }) }
}

/** Keeps the rules and never ends: it says more and more, or only that it is alive. */
function endless(random: Random, run: boolean): ModelCase {
  const large = random.once(2)
  const text: PartJson[] = [
    { type: 'text-start', id: 'p0' },
    { type: 'text-delta', id: 'p0', delta: 'x'.repeat(large ? 100_000 : random.pick([1, 1_000])) },
    { type: 'text-end', id: 'p0' },
  ]
  const parts = random.pick([text, text, [{ type: 'ping' }], [{ type: 'raw', rawValue: MARKER }]])
  const abortMs = parts === text && large ? undefined : random.pick([0, 1, 10, 40])
  return { open: 'pull', parts, after: 'forever', failure: 0, run, ...(abortMs === undefined ? {} : { abortMs }) }
}

function lawful(random: Random): { parts: PartJson[]; said: Said } {
  const parts: PartJson[] = random.once(2) ? [{ type: 'stream-start', warnings: [] }] : []
  const said: Said = { texts: [], calls: [] }
  for (const i of random.list(0, 5, (n) => n)) {
    if (random.once(3)) {
      const name = random.pick(['payout', 'errand', 'unknown_tool', 'refund'])
      const args = random.any(
        () => JSON.stringify({ n: i, note: MARKER }),
        () => strangeText(random),
        () => '{}',
      )
      if (random.once(2))
        parts.push(
          { type: 'tool-input-start', id: `c${i}`, toolName: name },
          { type: 'tool-input-delta', id: `c${i}`, delta: args },
          { type: 'tool-input-end', id: `c${i}` },
        )
      parts.push({ type: 'tool-call', toolCallId: `c${i}`, toolName: name, input: args })
      said.calls.push([`c${i}`, name, args])
      continue
    }
    const kind = random.once(4) ? 'reasoning' : 'text'
    const deltas = random.list(0, 4, () => plain(strangeText(random)))
    parts.push({ type: `${kind}-start`, id: `p${i}` }, ...deltas.map((delta) => ({ type: `${kind}-delta`, id: `p${i}`, delta })))
    parts.push({ type: `${kind}-end`, id: `p${i}` })
    if (kind === 'text') said.texts.push(deltas.join(''))
  }
  parts.push(finish(random, said.calls.length > 0 ? 'tool-calls' : 'stop'))
  return { parts, said }
}

/** Not one of the signs of {@link live}. */
const plain = (text: string): string => (text.startsWith('$') ? '' : text)

const finish = (random: Random, unified: string): PartJson => ({
  type: 'finish',
  finishReason: { unified, raw: random.pick(['stop', 'x']) },
  usage: { inputTokens: { total: random.below(100) }, outputTokens: { total: 3 } },
})

const TYPES = [
  ...['text-start', 'text-delta', 'text-end', 'reasoning-start', 'reasoning-delta', 'reasoning-end'],
  ...['tool-input-start', 'tool-input-delta', 'tool-input-end', 'tool-call', 'tool-result', 'tool-approval-request'],
  ...['file', 'reasoning-file', 'source', 'custom', 'response-metadata', 'finish', 'error', 'raw', 'ping', MARKER],
]
const ODD = [
  '$undefined',
  '$nan',
  '$infinity',
  '$bigint',
  '$symbol',
  '$function',
  '$date',
  '$bytes',
  '$url',
  '$cyclic',
  '$getter',
  '$proxy',
  '$map',
]

function anyPart(random: Random): PartJson {
  const id = `p${random.below(3)}`
  const odd = () => (random.once(6) ? random.pick(ODD) : strangeValue(random))
  const text = () => (random.once(10) ? odd() : strangeText(random))
  const metadata = random.once(3)
    ? { providerMetadata: random.once(3) ? odd() : { [random.pick(['raw', '__proto__', 'threadlog', MARKER])]: odd() } }
    : {}
  const type = random.pick(TYPES)
  switch (type) {
    case 'tool-call':
      return {
        type,
        toolCallId: random.pick([id, '', 'x']),
        toolName: random.pick(['payout', 'errand', MARKER, '']),
        input: text(),
        providerExecuted: random.pick([true, undefined, 'yes']),
        ...metadata,
      }
    case 'tool-result':
      return {
        type,
        toolCallId: id,
        toolName: 'search',
        result: odd(),
        isError: random.pick([true, false, null]),
        preliminary: random.once(4),
        ...metadata,
      }
    case 'file':
    case 'reasoning-file':
      return {
        type,
        mediaType: random.pick(['image/png', '', MARKER, 5]),
        data: random.pick<unknown>([
          { type: 'data', data: '$bytes' },
          { type: 'data', data: MARKER },
          { type: 'url', url: '$url' },
          { type: 'url', url: MARKER },
          odd(),
        ]),
        ...metadata,
      }
    case 'source':
      return { type, sourceType: random.pick(['url', 'document', MARKER]), id, url: text(), title: text(), ...metadata }
    case 'custom':
      return { type, kind: random.pick(['a.b', MARKER]), url: random.pick(['http://x', '::', MARKER]), more: odd(), ...metadata }
    case 'response-metadata':
      return { type, id: text(), modelId: text(), timestamp: odd() }
    case 'finish':
      return random.once(3)
        ? { type, finishReason: odd(), usage: odd(), ...metadata }
        : finish(random, random.pick(['stop', 'length', 'content-filter', 'error', 'interrupted', 'other', MARKER]))
    case 'error':
      return { type, error: random.pick<unknown>([MARKER, { message: MARKER, name: MARKER, code: MARKER }, odd(), '$error']) }
    case 'tool-input-start':
      return { type, id, toolName: text(), ...metadata }
    default:
      return { type, id, delta: text(), ...(random.once(6) ? { citations: odd(), rawValue: odd() } : {}), ...metadata }
  }
}

/** What JSON does not have, in place of its signs. */
export function live(value: unknown): unknown {
  if (typeof value === 'string') return Object.hasOwn(SIGNS, value) ? SIGNS[value]?.() : value
  if (Array.isArray(value)) return value.map(live)
  if (typeof value !== 'object' || value === null) return value
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (item === '$getter') Object.defineProperty(out, key, { enumerable: true, get: broken })
    else
      Object.defineProperty(out, key, {
        value: item === '$undefined' ? undefined : item === '$nan' ? Number.NaN : live(item),
        enumerable: true,
        configurable: true,
        writable: true,
      })
  }
  return out
}

const broken = (): never => {
  throw new Error(MARKER)
}

const SIGNS: Record<string, () => unknown> = {
  $infinity: () => Number.POSITIVE_INFINITY,
  $bigint: () => 10n,
  $symbol: () => Symbol(MARKER),
  $function: () => () => MARKER,
  $date: () => new Date(0),
  $bytes: () => Uint8Array.from(Buffer.from(MARKER)),
  $url: () => new URL(`https://example.test/?q=${encodeURIComponent(MARKER)}`),
  $map: () => new Map([[MARKER, MARKER]]),
  $error: () => new Error(MARKER),
  $cyclic: () => {
    const loop: Record<string, unknown> = { marker: MARKER }
    loop['self'] = loop
    return loop
  },
  $proxy: () => new Proxy({}, { get: broken, ownKeys: broken, getPrototypeOf: broken, has: broken }),
}

const FAILURES = 14

/** Failures as models and networks make them; each would quote what it was given. */
export function failure(n: number): unknown {
  const plainly = Object.assign(new Error(MARKER), { statusCode: 500, responseBody: MARKER, url: MARKER })
  const loop: Record<string, unknown> = { name: MARKER, message: MARKER }
  loop['cause'] = loop
  const all: unknown[] = [
    plainly,
    Object.assign(new Error(MARKER), { statusCode: 429, responseHeaders: { 'retry-after': MARKER, 'retry-after-ms': 'NaN' } }),
    Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(MARKER), { code: 'ECONNRESET' }) }),
    { name: MARKER, type: MARKER, code: MARKER, statusCode: MARKER, isRetryable: MARKER, headers: { get: () => MARKER } },
    { headers: { get: broken }, message: MARKER },
    MARKER,
    null,
    undefined,
    7,
    Symbol(MARKER),
    loop,
    new Proxy({}, { get: broken, has: broken }),
    Object.defineProperty(new Error(MARKER), 'name', { get: broken }),
    new AggregateError([plainly], MARKER, { cause: plainly }),
  ]
  return all[n % all.length]
}
