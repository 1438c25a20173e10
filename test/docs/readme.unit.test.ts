import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** What stands between the marks of an example, as a user of the package writes it. */
const marked = (path: string, comment: string) =>
  (read(path).split(`${comment} README: begin\n`)[1]?.split(`${comment} README: end`)[0] ?? '')
    .trim()
    .replace("'../../src/index.ts'", "'threadlog'")

test.each([
  ['examples/readme/main.ts', '//'],
  ['examples/readme/payouts.py', '#'],
  ['examples/capabilities/main.ts', '//'],
])('the README shows %s as it runs in the tests', (path, comment) => {
  expect(marked(path, comment).length).toBeGreaterThan(200)
  expect(read('README.md')).toContain(marked(path, comment))
})

test.each(['README.md', 'DESIGN.md', 'CONTRIBUTING.md'])('every place %s points at exists', (page) => {
  const links = [...read(page).matchAll(/\]\(([^)#:]+)(#[^)]*)?\)/g)].map((match) => match[1] ?? '')
  for (const link of links) expect(existsSync(join(root, link)), link).toBe(true)
})
