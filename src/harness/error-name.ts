import { errorClass } from '../base/index.ts'

/** The class of an error: all of it that may reach a model or the log. */
export function errorName(error: unknown): string {
  const name = errorClass(error) ?? typeof error
  return /^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name) ? name : 'Error'
}
