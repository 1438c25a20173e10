import { expect, test } from 'vitest'
import { countLine } from '../../scripts/test-counts.ts'

const file = (status: string, ...tests: string[]) => ({ status, assertionResults: tests.map((status) => ({ status })) })

test.each([
  ['what ran', 0, [file('passed', 'passed', 'passed'), file('passed', 'passed')], '3 passed, 0 failed, 0 skipped'],
  ['skips and todos', 0, [file('passed', 'passed', 'skipped', 'pending', 'todo')], '1 passed, 0 failed, 3 skipped'],
  ['failed tests', 1, [file('failed', 'passed', 'failed', 'failed')], '1 passed, 2 failed, 0 skipped'],
  ['a file that does not load', 1, [file('failed'), file('passed', 'passed')], '1 passed, 1 failed, 0 skipped'],
  ['a hook that throws', 1, [file('failed', 'skipped', 'skipped')], '0 passed, 1 failed, 2 skipped'],
  ['an error outside all tests', 1, [file('passed', 'passed')], '1 passed, 1 failed, 0 skipped'],
  ['no tests', 1, [], '0 passed, 1 failed, 0 skipped'],
])('%s', (_, code, testResults, line) => {
  expect(countLine({ testResults }, code)).toBe(line)
})
