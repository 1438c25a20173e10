import { z } from 'zod'
import { Payload } from '../base/index.ts'
import { catalogue, type EventType } from './catalogue.ts'
import { json } from './fields.ts'

/** Largest payload of one event field, in bytes; larger ones stand in the content store (R17). */
export const INLINE_PAYLOAD = 65_536

type Collect = (value: unknown, into: Payload[]) => void

/** How to come by the payloads of a value of this declaration; undefined when it can hold none. */
function collector(schema: z.ZodType): Collect | undefined {
  if (schema === json)
    return (value, into) => {
      if (value instanceof Payload) into.push(value)
    }
  if (schema instanceof z.ZodNullable) {
    const inner = collector(schema.unwrap() as z.ZodType)
    return inner && ((value, into) => value !== null && value !== undefined && inner(value, into))
  }
  if (schema instanceof z.ZodArray) {
    const item = collector(schema.element as z.ZodType)
    return (
      item &&
      ((value, into) => {
        if (Array.isArray(value)) for (const each of value) item(each, into)
      })
    )
  }
  return schema instanceof z.ZodObject ? ofRecord(schema) : undefined
}

function ofRecord(schema: z.ZodObject): Collect | undefined {
  const fields = Object.entries(schema.shape).flatMap(([name, field]) => {
    const collect = collector(field as z.ZodType)
    return collect ? [{ name, collect }] : []
  })
  if (fields.length === 0) return undefined
  return (value, into) => {
    if (typeof value !== 'object' || value === null) return
    for (const { name, collect } of fields) collect((value as Record<string, unknown>)[name], into)
  }
}

const collectors = new Map(Object.entries(catalogue).map(([type, schema]) => [type, ofRecord(schema)]))
const NONE: readonly Payload[] = []

/** The payloads of an event's fields, wherever they stand in them. */
export function payloadsOf(type: EventType, data: unknown): readonly Payload[] {
  const collect = collectors.get(type)
  if (!collect) return NONE
  const found: Payload[] = []
  collect(data, found)
  return found
}
