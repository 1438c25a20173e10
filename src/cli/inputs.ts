import { readFile } from 'node:fs/promises'
import { isThreadlogError, type JsonValue, parseJson } from '../base/index.ts'
import { usage } from './errors.ts'
import { readInput } from './io.ts'

/** Text given on the command line: itself, `@file`, or `-` for standard input. @throws usage error */
export async function textArgument(text: string, option: string): Promise<string> {
  if (text === '-') return readInput()
  if (!text.startsWith('@')) return text
  try {
    return await readFile(text.slice(1), 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw usage(`The file of ${option} cannot be read (${code ?? 'unknown'}).`, { path: text.slice(1) })
  }
}

/** A JSON value given as text, `@file` or `-`. @throws usage error */
export async function jsonArgument(text: string, option: string): Promise<JsonValue> {
  const json = await textArgument(text, option)
  try {
    return parseJson(json)
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    throw usage(`${option} is no JSON: ${error.message}`, {
      path: option,
      expected: error.expected ?? 'JSON, @file, or - for standard input',
    })
  }
}
