import { stripVTControlCharacters } from 'node:util'
import { casesOf } from '../test/support/vectors/index.ts'

// npm run vectors -- DIR: runs every recorded case of a folder.

const [folder] = process.argv.slice(2)
if (folder === undefined) {
  console.error('usage: npm run vectors -- DIR')
  process.exit(2)
}

const count = { passed: 0, failed: 0, skipped: 0 }
for (const { group, cases } of casesOf(folder))
  for (const one of cases)
    try {
      const skipped = await one.run()
      if (skipped === undefined) count.passed++
      else {
        count.skipped++
        console.log(`skipped  ${group}  ${one.id}  ${oneLine(skipped)}`)
      }
    } catch (error) {
      count.failed++
      console.log(`failed   ${group}  ${one.id}  ${oneLine(error instanceof Error ? error.message : String(error))}`)
    }
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
if (count.failed > 0 || count.passed + count.skipped === 0) process.exitCode = 1

function oneLine(text: string): string {
  const line = stripVTControlCharacters(text).replace(/\s+/g, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
