import { sha256Hex } from '../base/index.ts'
import { type Field, string } from './shape.ts'

/**
 * A call id that is missing is made from the part's place, so that reading the same text twice gives the same message. Two parts
 * without id never match each other, as with the random ids of the other library.
 */
export const callId: Field<string> = { read: string, otherwise: (at) => `call_${sha256Hex(at.path).slice(0, 24)}` }
