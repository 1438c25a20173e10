import { isThreadlogError } from '../../src/base/index.ts'

/** The code of the refusal that `work` throws; undefined if it throws none. What is no refusal is thrown on. */
export function codeOf(work: () => unknown): string | undefined {
  try {
    work()
  } catch (error) {
    if (isThreadlogError(error)) return error.code
    throw error
  }
  return undefined
}

/** What a promise is rejected with. */
export const caughtBy = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => {
      throw new Error('It was expected to be rejected.')
    },
    (error: unknown) => error,
  )
