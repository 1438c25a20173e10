import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore, runVector as runContinuation } from './continuation/index.ts'
import { pure } from './harness/pure.ts'
import { runs } from './harness/run.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
type Any = any

/** One recorded case. Resolves with why it is skipped, or with nothing when it passed. */
export interface Case {
  id: string
  title: string
  run(): Promise<string | undefined>
}

const MARKS = ['quirk', 'library_specific', 'python_specific'] as const

/** The cases of every vector file of a folder, whatever its format. */
export function casesOf(folder: string): { group: string; cases: Case[] }[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return files.flatMap((name) => {
    const file = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    const kindOf = KINDS[file.format]
    if (!kindOf) return []
    const cases = file.vectors.map((vector: Any) => ({ id: vector.id, title: vector.title, run: () => kindOf(vector, file) }))
    return [{ group: file.group as string, cases }]
  })
}

const KINDS: Readonly<Record<string, (vector: Any, file: Any) => Promise<string | undefined>>> = {
  'harness-vectors/1': harness,
  'continuation-vectors/1': (vector, file) =>
    runContinuation(vector, file.fixture ?? { scopes: {}, providers: {}, resumes: {} }, () => openStore('memory')),
}

async function harness(vector: Any): Promise<string | undefined> {
  const kind = pure[vector.kind] ?? runs[vector.kind]
  if (!kind) throw new Error(`no runner for ${vector.kind}`)
  try {
    await kind(vector)
    return undefined
  } catch (error) {
    const mark = MARKS.find((name) => vector[name])
    if (mark === undefined) throw error
    return mark === 'quirk' ? vector.quirk : mark.replace('_', ' ')
  }
}
