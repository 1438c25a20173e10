import { z } from 'zod'
import { fatal, isJsonObject } from '../base/index.ts'
import { catalogue, type Declarations, type EventData, type EventType } from './catalogue.ts'
import type { Envelope } from './envelope.ts'
import { count, flag, json, text } from './fields.ts'
import { fitOf } from './fit.ts'

/**
 * How events of a retired type are read: as events of its successor. Pure, like a fold: the same fields give the same fields in every
 * process and for ever. The stored bytes and their hash stay; only the type and the fields that a fold sees are new.
 */
export interface Upcaster {
  /** The fields as they were declared. Their schema stays under schemas/, for logs hold them. */
  readonly from: z.ZodObject
  /** The successor: a type of the catalogue, or one that is retired as well. */
  readonly to: string
  /** Fields of the successor from fields as decoded. What it throws makes the event undecodable. */
  up(data: never, envelope: Envelope): object
}

/** By retired type. */
export type Upcasters = Readonly<Record<string, Upcaster>>

/** An upcaster with its types checked. */
export const upcaster = <S extends z.ZodRawShape, T extends string>(
  from: S,
  to: T,
  up: (data: z.infer<z.ZodObject<S, z.core.$strict>>, envelope: Envelope) => T extends EventType ? EventData<T> : object,
): Upcaster => ({ from: z.strictObject(from), to, up })

/** The retired types of this package. */
export const upcasters: Upcasters = {
  // Free-form details could hold anything, a provider's words too. What was written there is two facts.
  'model.failed/1': upcaster(
    { step: count, code: text, retryable: flag, details: json },
    'model.failed/2',
    ({ step, code, retryable, details: { value } }) => {
      const { error_type, status } = isJsonObject(value) ? value : {}
      return {
        step,
        code,
        retryable,
        error_type: typeof error_type === 'string' && /^[A-Za-z_][\w.]{0,63}$/.test(error_type) ? error_type : 'Error',
        status: Number.isSafeInteger(status) && Number(status) >= 0 ? Number(status) : null,
        retry_after_ms: null,
      }
    },
  ),
}

/** The way from a retired type to one of the catalogue, in one call. */
export interface Upcast {
  readonly type: string
  apply(data: unknown, envelope: Envelope): unknown
}

/**
 * Follows a retired type to the catalogue; undefined for a type that is not retired. The outcome is checked against its declaration.
 * @throws ThreadlogError `upcasters_invalid` when the way leads nowhere or round in a circle
 */
export function upcastOf(type: string, steps: Upcasters, declarations: Declarations = catalogue): Upcast | undefined {
  if (!Object.hasOwn(steps, type)) return undefined
  const way: Upcaster[] = []
  const seen = new Set<string>()
  let to = type
  while (Object.hasOwn(steps, to) && !seen.has(to)) {
    seen.add(to)
    const step = steps[to] as Upcaster
    way.push(step)
    to = step.to
  }
  const target = Object.hasOwn(declarations, to) ? declarations[to] : undefined
  if (!target || seen.has(to))
    throw fatal('upcasters_invalid', `The upcasters lead from ${type} to no type of the catalogue.`, { details: { type, to } })
  const fit = fitOf(target)
  return {
    type: to,
    apply: (data, envelope) =>
      fit(
        way.reduce<unknown>((fields, step) => step.up(fields as never, envelope), data),
        '$.data',
      ),
  }
}
