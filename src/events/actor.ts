import type { z } from 'zod'
import { optional, record, text } from './fields.ts'

/** Who caused an event: `kind` library · engine · human · provider · operator, an id within it, and the way in. */
export const actor = record('Actor', { kind: text, id: text, source: text })
/** What an event answers: a command, or a record elsewhere. */
export const causation = record('Causation', { command_id: optional(text), source: optional(text) })

export type Actor = z.infer<typeof actor>
export type Causation = z.infer<typeof causation>
