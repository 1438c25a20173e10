import { readFileSync } from 'node:fs'

export interface Vector {
  id: string
  kind: string
  title: string
  // biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
  [field: string]: any
}

/** The recorded vectors of one group (test/vectors/harness/README.md). */
export function vectorsOf(group: string): Vector[] {
  const file = new URL(`../vectors/harness/${group}.json`, import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] }).vectors
}
