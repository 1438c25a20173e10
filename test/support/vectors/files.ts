import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** One recorded case; what else it holds depends on its kind (README beside the files). */
export interface Vector {
  id: string
  kind: string
  title: string
  // biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
  [field: string]: any
}

export interface VectorFile {
  format: string
  group: string
  vectors: Vector[]
  // biome-ignore lint/suspicious/noExplicitAny: as above
  fixture?: any
}

/** The vector files of a folder and of those in it; other files are passed over. */
export function vectorFiles(folder: string): VectorFile[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'))
  return names.sort().flatMap((name) => {
    const file = JSON.parse(readFileSync(join(folder, name), 'utf8')) as VectorFile
    return typeof file?.format === 'string' && Array.isArray(file.vectors) ? [file] : []
  })
}

/** The recorded vectors of one group of this repository (test/vectors). */
export const vectorsOf = (library: 'harness' | 'continuation', group: string): Vector[] =>
  vectorFiles(fileURLToPath(new URL(`../../vectors/${library}`, import.meta.url))).find((file) => file.group === group)
    ?.vectors ?? []
