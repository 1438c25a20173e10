import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Found } from './run.ts'

export const FOUND = join(import.meta.dirname, '..', 'found')

/** Writes what was found to a file of its own; the same fault always to the same one. Returns its path. */
export function keep(found: Found, folder = FOUND): string {
  const name = createHash('sha256').update(`${found.kind} ${found.what}`).digest('hex').slice(0, 10)
  const file = join(folder, `${found.border}-${found.kind}-${name}.json`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`)
  return file
}

export const kept = (file: string): Found => JSON.parse(readFileSync(file, 'utf8')) as Found
