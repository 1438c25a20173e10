import { z } from 'zod'
import { type LoadContent, Payload } from '../base/index.ts'
import { catalogue, type EventType } from './catalogue.ts'
import type { LogEvent } from './envelope.ts'
import { json } from './fields.ts'

/** Largest payload of one event field, in bytes; larger ones stand in the content store (R17). */
export const INLINE_PAYLOAD = 65_536

type Visit = (value: unknown, each: (payload: Payload) => void) => void

/** Visits the payloads of a value of this declaration; undefined when it can hold none. */
function visitor(schema: z.ZodType): Visit | undefined {
  if (schema === json)
    return (value, each) => {
      if (value instanceof Payload) each(value)
    }
  if (schema instanceof z.ZodNullable) {
    const inner = visitor(schema.unwrap() as z.ZodType)
    return inner && ((value, each) => value !== null && value !== undefined && inner(value, each))
  }
  if (schema instanceof z.ZodArray) {
    const item = visitor(schema.element as z.ZodType)
    return (
      item &&
      ((value, each) => {
        if (Array.isArray(value)) for (const one of value) item(one, each)
      })
    )
  }
  return schema instanceof z.ZodObject ? ofRecord(schema) : undefined
}

function ofRecord(schema: z.ZodObject): Visit | undefined {
  const fields = Object.entries(schema.shape).flatMap(([name, field]) => {
    const visit = visitor(field as z.ZodType)
    return visit ? [{ name, visit }] : []
  })
  if (fields.length === 0) return undefined
  return (value, each) => {
    if (typeof value !== 'object' || value === null) return
    for (const { name, visit } of fields) visit((value as Record<string, unknown>)[name], each)
  }
}

const visitors = new Map(Object.entries(catalogue).map(([type, schema]) => [type, ofRecord(schema)]))

/** Visits the payloads of an event's fields, wherever they stand in them. */
export const eachPayload = (type: EventType, data: unknown, each: (payload: Payload) => void): void =>
  visitors.get(type)?.(data, each)

/** The payloads of an event's fields. */
export function payloadsOf(type: EventType, data: unknown): Payload[] {
  const found: Payload[] = []
  eachPayload(type, data, (payload) => found.push(payload))
  return found
}

/** Tells the payloads of an event that are kept elsewhere how to come by their values. */
export function bindContent({ type, data, stream, version }: LogEvent, load: LoadContent): void {
  eachPayload(type, data, (payload) => {
    if (payload.isReference) payload.loadFrom(load, { stream, version })
  })
}
