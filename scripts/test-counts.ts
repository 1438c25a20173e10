/** The part of vitest's JSON report that is counted. */
export interface VitestReport {
  testResults: { status: string; assertionResults: { status: string }[] }[]
}

/**
 * `N passed, N failed, N skipped`. Everything that did not run counts as skipped: skips, todos, and what stands behind a failed hook. A
 * file that failed without a failed test (it does not load, a hook threw) counts as one failure, and so does an error outside all tests.
 * @param code vitest's exit code
 */
export function countLine({ testResults }: VitestReport, code: number): string {
  const statuses = testResults.flatMap((file) => file.assertionResults.map((test) => test.status))
  const passed = statuses.filter((status) => status === 'passed').length
  const failed = statuses.filter((status) => status === 'failed').length
  const silent = testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.every((test) => test.status !== 'failed'),
  )
  const outside = code !== 0 && failed + silent.length === 0 ? 1 : 0
  return `${passed} passed, ${failed + silent.length + outside} failed, ${statuses.length - passed - failed} skipped`
}
