import { reject } from '../base/index.ts'

const PREFIXED = /^[a-z][a-z0-9]*_[a-z0-9]+$/
const LEGACY = /^thread-[0-9a-f]{32}$/
export const MAX_THREAD_ID = 256
export const THREAD_ID_FORM =
  'at most 256 characters: a prefix of lowercase letters and digits, one underscore, lowercase letters and digits; or thread- and 32 hex digits'

/** True for ids a harness state may carry. Threads of other hosts are free text and cannot be exported as one. */
export const isThreadId = (id: unknown): id is string =>
  typeof id === 'string' && id.length <= MAX_THREAD_ID && (PREFIXED.test(id) || LEGACY.test(id))

/** @throws ThreadlogError `thread_id_invalid` */
export function checkThreadId(id: unknown, path = 'threadId'): string {
  if (isThreadId(id)) return id
  throw reject('thread_id_invalid', 'The thread id does not have the form of a harness thread.', {
    path,
    expected: THREAD_ID_FORM,
  })
}
