import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

test('the example of a capability runs as the README shows it', () => {
  const example = fileURLToPath(new URL('../../examples/capabilities/main.ts', import.meta.url))
  const printed = execFileSync(process.execPath, [example], { encoding: 'utf8' })
  expect(printed).toBe('Ticket 7 is open.\n{"version":"1","data":{"opened":1}}\n')
})
