import { inspect } from 'node:util'
import { type Disposition, isThreadlogError, type ThreadlogError } from '../../src/base/index.ts'
import { Fault, promise } from './border.ts'

/**
 * Stands in everything that is payload. It is no name, schema id, digest, class name or version, so no check can let it pass as one;
 * where it turns up outside the payload, payload has leaked.
 */
export const MARKER = 'zq!payload?7f3a'

/** @throws Fault when `text` holds payload */
export function assertClean(text: string, where: string): void {
  promise(!text.includes(MARKER), 'leak', `payload in ${where}`, text.slice(0, 300))
}

const DISPOSITIONS: readonly Disposition[] = ['retry', 'reject', 'fatal']

/**
 * The code of a refusal that is one: coded, with a disposition, and without payload in anything it shows. The cause may quote, it is
 * shown to nobody.
 * @param keys true where the path may name keys of the input
 * @throws Fault
 */
export function codeOf(error: unknown, where: string, keys = false): string {
  if (error instanceof Fault) throw error
  if (!isThreadlogError(error)) throw new Fault('uncoded', `${where}: ${nameOf(error)}`, inspect(error).slice(0, 1_500))
  const { code, disposition, path, ...rest } = error.toJSON() as unknown as ThreadlogError
  promise(/^[a-z][a-z0-9_]*$/.test(code), 'uncoded', `${where}: an error with a malformed code`, code)
  promise(DISPOSITIONS.includes(disposition), 'uncoded', `${where}: ${code} has no disposition`)
  // The message may name the place, too.
  const told = JSON.stringify({ ...rest, message: keys ? error.message.replace(path ?? '', '') : error.message })
  assertClean(told, `the error ${code} of ${where}`)
  if (!keys) assertClean(path ?? '', `the path of ${code} of ${where}`)
  return code
}

/** Class, code and first frame of an error: tells two crashes apart. */
export function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`
  const { code } = error as NodeJS.ErrnoException
  const frame = /\/(src\/[^\s:]+):\d+/.exec(error.stack ?? '')?.[1]
  return [error.name, code, frame && `at ${frame}`].filter((part) => part !== undefined).join(' ')
}
