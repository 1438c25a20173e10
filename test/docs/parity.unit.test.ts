import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { vectorFiles } from '../support/vectors/files.ts'

const root = join(import.meta.dirname, '../..')

/** `1, 3 to 5` → 1, 3, 4, 5. */
const numbersIn = (text: string): number[] =>
  [...text.matchAll(/(\d+)(?: to (\d+))?/g)].flatMap(([, from, to]) =>
    Array.from({ length: Number(to ?? from) - Number(from) + 1 }, (_, i) => Number(from) + i),
  )

test('each of the 154 cases is in the title of a test, in a recorded vector, or listed with its reason', () => {
  const recorded = vectorFiles(join(root, 'test/vectors/harness')).flatMap((file) =>
    file.vectors.flatMap((v) => v['spec_case'] ?? []),
  )
  const titles = globSync('test/**/*.test.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/['"`]case ([\d, ]+):/g)].flatMap((match) => numbersIn(match[1] ?? '')),
  )
  const page = readFileSync(join(root, 'docs/parity.md'), 'utf8').split('## State and resume')[1]?.split(/^## /m)[0] ?? ''
  const listed = [...page.matchAll(/^\| ([\d, to]+) \|/gm)].flatMap((match) => numbersIn(match[1] ?? ''))
  const known = new Set([...recorded, ...titles, ...listed])
  const missing = Array.from({ length: 154 }, (_, i) => i + 1).filter((n) => !known.has(n))
  expect(missing).toEqual([])
})

test('what the page says of a test is so', () => {
  const page = readFileSync(join(root, 'docs/parity.md'), 'utf8').split('## Continuations')[0] ?? ''
  for (const [, numbers, file] of page.matchAll(/^\| ([\d, to]+) \|.*`(test\/[^`]+\.ts)` \|$/gm)) {
    const text = readFileSync(join(root, file ?? ''), 'utf8')
    const titles = new Set([...text.matchAll(/['"`]case ([\d, ]+):/g)].flatMap((match) => numbersIn(match[1] ?? '')))
    for (const n of numbersIn(numbers ?? '')) expect([file, n, titles.has(n)]).toEqual([file, n, true])
  }
})

test('each of the 98 cases of continuations is in a recorded vector, in a title, or listed', () => {
  const recorded = vectorFiles(join(root, 'test/vectors/continuation')).flatMap((file) =>
    file.vectors.flatMap((v) => v['spec_case'] ?? []),
  )
  const files = globSync(['test/continuations/*.test.ts', 'src/testing/continuation-conformance/*.ts'], { cwd: root })
  const titles = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/['"`](?:case )?((?:\d+|[SW]\d+)(?:, (?:\d+|[SW]\d+))*): /g)].flatMap(
      (match) => numbersIn((match[1] ?? '').replaceAll(/[SW]\d+/g, '')),
    ),
  )
  const page = readFileSync(join(root, 'docs/parity.md'), 'utf8').split('## Continuations')[1] ?? ''
  const listed = [...page.matchAll(/^\| ([\d, to]+) \|/gm)].flatMap((match) => numbersIn(match[1] ?? ''))
  const known = new Set([...recorded.map(Number), ...titles, ...listed])
  expect(Array.from({ length: 98 }, (_, i) => i + 1).filter((n) => !known.has(n))).toEqual([])
})
