import { strangeText } from './json-text.ts'
import { MARKER } from './marker.ts'
import type { Random } from './random.ts'

/** A JSON value nobody asked for. */
export const strangeValue = (random: Random): unknown =>
  random.any<unknown>(
    () => null,
    () => random.pick([true, false]),
    () => random.pick([0, -1, 1.5, 1e21, 5e-324, 2 ** 53 - 1, -(2 ** 53 - 1), 2 ** 31, 4_294_967_296]),
    () => strangeText(random),
    () => [],
    () => ({}),
    () => [MARKER, null, { a: [] }],
    () => ({ [MARKER]: MARKER }),
    () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
    () => 'x'.repeat(random.size(3_000)),
    () => Array.from({ length: random.size(300) }, (_, i) => i),
    () => nested(random.pick([10, 31, 32, 33, 200, 255, 256, 257])),
  )

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { n: value }
  return value
}

/** A copy of a JSON value with one to three places changed: replaced, removed, renamed, doubled, moved. */
export function changedValue(random: Random, value: unknown): unknown {
  let changed = structuredClone(value)
  for (let times = random.between(1, 3); times > 0; times--) changed = changedOnce(random, changed)
  return changed
}

type Parent = Record<string, unknown> | unknown[]

function changedOnce(random: Random, root: unknown): unknown {
  const places = placesOf(root)
  if (places.length === 0) return strangeValue(random)
  const { parent, key } = random.pick(places)
  if (Array.isArray(parent)) changeList(random, parent, key as number, places)
  else changeObject(random, parent, String(key), places)
  return root
}

function changeList(random: Random, list: unknown[], at: number, places: Place[]): void {
  random.any(
    () => void list.splice(at, 1, strangeValue(random)),
    () => void list.splice(at, 1),
    () => void list.splice(at, 0, structuredClone(list[at])),
    () => void list.splice(at, 0, strangeValue(random)),
    () => void list.reverse(),
    () => void list.splice(at, 1, elsewhere(random, places)),
  )
}

function changeObject(random: Random, object: Record<string, unknown>, key: string, places: Place[]): void {
  const own = (name: string, value: unknown) =>
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  const value = object[key]
  random.any(
    () => void own(key, strangeValue(random)),
    () => void own(key, strangeValue(random)),
    () => void delete object[key],
    () => {
      delete object[key]
      own(random.pick([`${key}s`, key.toUpperCase(), '__proto__', strangeText(random)]), value)
    },
    () => void own(random.pick(['__proto__', 'constructor', 'toJSON', MARKER, 'extra', '0']), strangeValue(random)),
    () => void own(key, elsewhere(random, places)),
    () =>
      void own(
        key,
        typeof value === 'string' ? `${value}${strangeText(random)}` : typeof value === 'number' ? value + 1 : [value],
      ),
  )
}

const elsewhere = (random: Random, places: Place[]): unknown => {
  const { parent, key } = random.pick(places)
  return structuredClone((parent as Record<string, unknown>)[key as string])
}

interface Place {
  parent: Parent
  key: string | number
}

function placesOf(value: unknown, into: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null || into.length > 3_000) return into
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    into.push({ parent: value as Parent, key })
    placesOf((value as Record<string, unknown>)[key as string], into)
  }
  return into
}
