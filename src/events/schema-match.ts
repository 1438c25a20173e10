import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../base/index.ts'
import type { AvroRecord } from './avro-schema.ts'

const PRIMITIVE = new Set(['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string', 'array', 'map'])

/**
 * True for a schema as a registry gives it back: it may order, document and name things otherwise, and say `{"type": "string"}` for
 * `"string"`. Defaults and logical types count.
 * @param found any parsed JSON
 */
export const sameSchema = (found: unknown, ours: AvroRecord): boolean =>
  canonicalJson(plain((found ?? null) as JsonValue, '')) === canonicalJson(plain(ours as unknown as JsonValue, ''))

/** With full names, without documentation and without objects where a name will do. */
function plain(schema: JsonValue, namespace: string): JsonValue {
  if (typeof schema === 'string') return PRIMITIVE.has(schema) ? schema : full(schema, namespace)
  if (Array.isArray(schema)) return schema.map((branch) => plain(branch, namespace))
  if (!isJsonObject(schema)) return schema
  const { doc: _, namespace: own, name, ...rest } = schema
  const inside = typeof own === 'string' ? own : namespace
  if (typeof name === 'string') {
    rest['name'] = full(name, inside)
    namespace = rest['name'].slice(0, Math.max(0, rest['name'].lastIndexOf('.')))
  }
  for (const part of ['type', 'items', 'values']) if (rest[part] !== undefined) rest[part] = plain(rest[part], namespace)
  if (Array.isArray(rest['fields'])) rest['fields'] = rest['fields'].map((field) => fieldOf(field, namespace))
  return Object.keys(rest).length === 1 && rest['type'] !== undefined ? rest['type'] : rest
}

/** The name of a field stands alone: it has no namespace. */
function fieldOf(field: JsonValue, namespace: string): JsonObject | JsonValue {
  if (!isJsonObject(field)) return field
  const { doc: _, ...rest } = field
  return { ...rest, type: plain(rest['type'] ?? null, namespace) }
}

const full = (name: string, namespace: string): string => (name.includes('.') || namespace === '' ? name : `${namespace}.${name}`)
