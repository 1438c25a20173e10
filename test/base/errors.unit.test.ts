import { expect, test } from 'vitest'
import { fatal, isThreadlogError, reject, retryLater, ThreadlogError } from '../../src/base/index.ts'

test('code, disposition and facts; the cause is kept but not shown to machines', () => {
  const cause = new Error('inner')
  const error = reject('bad_thing', 'It is bad.', {
    path: '$.a',
    expected: 'good',
    hint: 'Mend it.',
    details: { limit: 3 },
    cause,
  })
  expect(error).toBeInstanceOf(Error)
  expect(error.cause).toBe(cause)
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    ...{ code: 'bad_thing', disposition: 'reject', message: 'It is bad.', path: '$.a', expected: 'good', hint: 'Mend it.' },
    details: { limit: 3 },
  })
  expect([retryLater('a', '').disposition, fatal('b', '').disposition]).toEqual(['retry', 'fatal'])
  expect(fatal('b', '').details).toEqual({})
})

test('the guard knows errors of another copy of the class by their mark', () => {
  const foreign = Object.assign(new Error('x'), { code: 'contention', [Symbol.for('threadlog.error')]: true })
  expect(isThreadlogError(foreign)).toBe(true)
  expect(isThreadlogError(foreign, 'contention', 'other')).toBe(true)
  expect(isThreadlogError(foreign, 'other')).toBe(false)
  expect(isThreadlogError(new ThreadlogError('a', { disposition: 'fatal', message: '' }), 'a')).toBe(true)
})

test.each([null, undefined, 'text', 1, {}, new Error('x'), Object.assign(new Error('x'), { code: 'contention' })])(
  '%s is not one of ours',
  (value) => {
    expect(isThreadlogError(value)).toBe(false)
  },
)
