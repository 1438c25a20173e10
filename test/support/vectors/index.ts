import { AssertionError } from 'node:assert/strict'
import { isThreadlogError } from '../../../src/base/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { openStore, runVector as runContinuation } from './continuation/index.ts'
import { type VectorFile, vectorFiles } from './files.ts'
import { pure } from './harness/pure.ts'
import { runs } from './harness/run.ts'

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
type Any = any

/** One recorded case. Resolves with why it is skipped, or with nothing when it passed. */
export interface Case {
  id: string
  kind: string
  /** What is tested, after the numbers of the cases of the written specification. */
  title: string
  run(): Promise<string | undefined>
}

const MARKS = ['quirk', 'library_specific', 'python_specific'] as const

/**
 * The cases of every vector file of a folder, whatever its format.
 * @param log where cases that run an agent run, each under an application of its own; default: a log in memory for each
 */
export function casesOf(folder: string, log?: LogBackend): { group: string; cases: Case[] }[] {
  return vectorFiles(folder).map((file) => {
    const kindOf = KINDS[file.format] ?? unknownFormat
    const cases = file.vectors.map((vector) => {
      const { id, kind } = vector
      return { id, kind, title: titleOf(vector), run: () => kindOf(log ? { ...vector, log } : vector, file) }
    })
    return { group: file.group, cases }
  })
}

async function unknownFormat(_vector: Any, { format }: VectorFile): Promise<never> {
  throw new Error(`no runner for files of the format ${format}`)
}

const titleOf = ({ title, spec_case = [] }: Any): string =>
  spec_case.length > 0 ? `case ${spec_case.join(', ')}: ${title}` : title

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
    // A vector with a mark may differ; no vector may break the language.
    const differs = error instanceof AssertionError || isThreadlogError(error)
    const mark = MARKS.find((name) => vector[name])
    if (mark === undefined || !differs) throw error
    return mark === 'quirk' ? vector.quirk : mark.replace('_', ' ')
  }
}
