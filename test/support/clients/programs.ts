import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { TestContext } from 'vitest'

// Kafka clients in other languages. A test that finds none is skipped and says why, or fails where Kafka is required.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const examples = join(root, 'examples/python')

/** A program that can be run, or why there is none. */
export type Found = { path: string } | { missing: string }

/** `path` of what was found. */
export function needed(found: Found, { skip }: Pick<TestContext, 'skip'>): string {
  if ('path' in found) return found.path
  if (process.env['REQUIRE_KAFKA'] === '1') throw new Error(found.missing)
  skip(found.missing)
  throw new Error(found.missing)
}

/** Path of one of the Python examples. */
export const example = (name: string): string => join(examples, `${name}.py`)

/** A Python with what the examples need, in a virtual environment that is made once for each change of their requirements. */
export async function python(): Promise<Found> {
  const place = join(root, '.tmp/python')
  const path = join(place, 'bin/python')
  const mark = join(place, 'requirements.txt')
  const requirements = join(examples, 'requirements.txt')
  const wanted = readFileSync(requirements, 'utf8')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === wanted) return { path }
  try {
    rmSync(place, { recursive: true, force: true })
    mkdirSync(place, { recursive: true })
    await run('python3', ['-m', 'venv', place])
    await run(path, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements])
    writeFileSync(mark, wanted)
    return { path }
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string }
    return {
      missing: `needs python3 with venv and pip, and confluent-kafka from pip: ${lastLine(stderr) || (error as Error).message}`,
    }
  }
}

export async function kcat(): Promise<Found> {
  try {
    await run('kcat', ['-V'])
    return { path: 'kcat' }
  } catch {
    return { missing: 'needs kcat (Debian package kcat)' }
  }
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

/** Runs a program that ends by itself, with text on its standard input, and answers what it printed. */
export async function printed(command: string, args: readonly string[], input = ''): Promise<string> {
  const running = run(command, [...args], { timeout: 30_000, maxBuffer: 2 ** 24 })
  running.child.stdin?.end(input)
  return (await running).stdout
}
