import { isThreadlogError } from '../../../../src/base/index.ts'

// Values that JSON or JavaScript would lose (test/vectors/continuation/README.md, "Values").

/** What a vector holds beyond JSON; `undecidable` when it can only be skipped here. */
export class Skip extends Error {}

class Opaque {
  readonly field = 1
}

const SPECIAL: Record<string, () => unknown> = {
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  '-Infinity': () => Number.NEGATIVE_INFINITY,
  bytes: () => new Uint8Array([1, 2]),
  set: () => new Set([1]),
  'empty-set': () => new Set(),
  frozenset: () => new Set([1]),
  function: () => () => 1,
  opaque: () => new Opaque(),
  type: () => Opaque,
  cycle() {
    const list: unknown[] = []
    list.push(list)
    return list
  },
  'object-cycle'() {
    const object: Record<string, unknown> = {}
    object['self'] = object
    return object
  },
  'deep-cycle'() {
    const object: Record<string, unknown> = {}
    object['a'] = [{ b: [object] }]
    return object
  },
  'int-key': () => new Map([[1, 'x']]),
  'null-key': () => new Map([[null, 'x']]),
  'bool-key': () => new Map([[true, 'x']]),
  'mixed-key': () =>
    new Map<unknown, unknown>([
      ['a', 1],
      [1, 2],
    ]),
  shared() {
    const one = { n: 1 }
    return [one, one]
  },
}

/** The live value a vector's input stands for. */
export function live(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(live)
  if (typeof value !== 'object' || value === null) return value
  const v = value as Record<string, never>
  if ('$float' in v) return Number(v['$float'])
  if ('$int' in v) return BigInt(v['$int'])
  if ('$repeat' in v) return (v['$repeat'] as { text: string }).text.repeat((v['$repeat'] as { times: number }).times)
  if ('$join' in v) return (v['$join'] as unknown[]).map(live).join('')
  if ('$deep' in v) return deep(v['$deep'])
  if ('$tuple' in v) return (v['$tuple'] as unknown[]).map(live)
  if ('$raw' in v) return live(v['$raw'])
  if ('$special' in v) {
    const make = SPECIAL[v['$special'] as string]
    if (!make) throw new Skip(`no ${v['$special']} in JavaScript`)
    return make()
  }
  if ('$python' in v) throw new Skip('a Python value')
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(v))
    Object.defineProperty(out, key, { value: live(item), enumerable: true, configurable: true, writable: true })
  return out
}

/** The JSON text of a schema with whole floats, which only text can tell from integers; undefined for all others. */
export function jsonText(value: unknown): string | undefined {
  const numbers: string[] = []
  const marked = JSON.stringify(value, (_key, item) => {
    const spelled = item?.$float ?? item?.$int
    if (spelled === undefined) return item
    numbers.push(spelled)
    return `\uE000${numbers.length - 1}`
  })
  if (!marked.includes('"\uE000') || /"\$(special|python|tuple|deep|repeat|join|raw)"/.test(marked)) return undefined
  return marked.replace(/"\uE000(\d+)"/g, (_m, i) => numbers[Number(i)] as string)
}

function deep({ depth, kind, leaf }: { depth: number; kind: 'list' | 'object'; leaf: unknown }): unknown {
  let value = leaf
  for (let i = 0; i < depth; i++) value = kind === 'list' ? [value] : { a: value }
  return value
}

/** True if a vector rests on an integer beyond 2^53 somewhere: refusing it is as right as keeping it. */
export const hasBigInteger = (value: unknown): boolean => JSON.stringify(value)?.includes('"$int"') === true

/** The name under which the vectors know an error. */
export function errorName(error: unknown): string {
  if (!isThreadlogError(error)) throw error
  switch (error.code) {
    case 'continuation_conflict':
      return 'ContinuationConflictError'
    case 'continuation_invalid':
      return 'ContinuationValidationError'
    case 'checkpoint_conflict':
      return 'CheckpointConflictError'
    case 'not_found':
    case 'invalid_argument':
      return error.code
    // Scope ids of more than 512 code points, or not well-formed: a limit of the log's streams.
    case 'scope_id_invalid':
      return 'invalid_argument'
    default:
      throw error
  }
}

/** `{value}` or `{error}`, as `expect` has it. */
export async function outcome(work: () => unknown): Promise<{ value: unknown } | { error: string }> {
  try {
    const value = await work()
    return { value: value === undefined ? null : value }
  } catch (error) {
    if (error instanceof Skip) throw error
    return { error: errorName(error) }
  }
}
