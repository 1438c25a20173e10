import { readFileSync } from 'node:fs'

export interface Vector {
  id: string
  title: string
  python_specific?: boolean
  // biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
  [field: string]: any
}

/** The recorded vectors of one group (test/vectors/continuation). */
export function vectorsOf(group: string, folder = 'continuation'): Vector[] {
  const file = new URL(`../vectors/${folder}/${group}.json`, import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] }).vectors
}

/** A vector's value with its `$…` forms made real. `skip` for what this language does not have. */
export function real(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(real)
  if (typeof value !== 'object' || value === null) return value
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const form = value as Record<string, any>
  if ('$float' in form) return Number(form['$float'])
  if ('$int' in form) return BigInt(form['$int'])
  if ('$repeat' in form) return String(form['$repeat'].text).repeat(form['$repeat'].times)
  if ('$join' in form) return (real(form['$join']) as unknown[]).join('')
  if ('$tuple' in form) return real(form['$tuple'])
  if ('$special' in form) return special(form['$special'])
  if ('$deep' in form) {
    const { depth, kind, leaf } = form['$deep']
    let made: unknown = leaf
    for (let i = 0; i < depth; i++) made = kind === 'list' ? [made] : { a: made }
    return made
  }
  const out: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(form))
    Object.defineProperty(out, key, { value: real(item), enumerable: true, configurable: true, writable: true })
  return out
}

function special(name: string): unknown {
  const list: unknown[] = []
  const object: Record<string, unknown> = {}
  switch (name) {
    case 'NaN':
      return Number.NaN
    case 'Infinity':
      return Number.POSITIVE_INFINITY
    case '-Infinity':
      return Number.NEGATIVE_INFINITY
    case 'bytes':
      return new Uint8Array([1])
    case 'set':
    case 'frozenset':
      return new Set([1])
    case 'empty-set':
      return new Set()
    case 'function':
      return () => 1
    case 'opaque':
      return new (class Opaque {})()
    case 'type':
      return class Thing {}
    case 'cycle':
      list.push(list)
      return list
    case 'object-cycle':
      object['self'] = object
      return object
    case 'deep-cycle':
      object['a'] = [{ b: [object] }]
      return object
    case 'int-key':
    case 'null-key':
    case 'bool-key':
    case 'mixed-key':
      return new Map<unknown, unknown>([[1, 1]])
    case 'shared':
      return ((one) => [one, one])({ n: 1 })
    default:
      throw new Error(`no form for ${name}`)
  }
}
