import { describe, expect, test } from 'vitest'
import { isThreadlogError, type JsonObject, type JsonValue } from '../../src/base/index.ts'
import { validateAnswer, validateApproval, validateQuestionRequest } from '../../src/continuations/index.ts'
import { QUESTIONS } from '../support/threads.ts'

const refusal = (work: () => unknown): { code: string; path?: string } | undefined => {
  try {
    work()
  } catch (error) {
    if (isThreadlogError(error)) return { code: error.code, path: error.path }
    throw error
  }
  return undefined
}

describe('approvals', () => {
  test.each<JsonValue>([
    { approved: true },
    { approved: false },
    { approved: false, message: 'no' },
    { approved: true, override_args: { cents: 1, __proto: [] }, message: 'less' },
  ])('%j is one', (value) => expect(validateApproval(value)).toEqual(value))

  test.each<[JsonValue, string]>([
    [{ approved: 1 }, '$.approved'],
    [{ approved: 'true' }, '$.approved'],
    [{}, '$.approved'],
    [{ approved: true, override_args: [] }, '$.override_args'],
    [{ approved: true, override_args: null }, '$.override_args'],
    [{ approved: false, override_args: {} }, '$.override_args'],
    [{ approved: true, message: 1 }, '$.message'],
    [{ approved: true, note: '' }, '$'],
    [true, '$'],
    [null, '$'],
  ])('%j is none', (value, path) => expect(refusal(() => validateApproval(value))).toEqual({ code: 'approval_invalid', path }))

  test('override arguments keep names that are special in JavaScript', () => {
    const value = JSON.parse('{"approved":true,"override_args":{"__proto__":1}}') as JsonValue
    expect(JSON.stringify(validateApproval(value))).toBe(JSON.stringify(value))
  })
})

describe('question requests', () => {
  const [question] = QUESTIONS.questions
  const option = (label: string) => ({ label, description: 'd' })
  const one = (change: object) => ({ questions: [{ ...question, ...change }] })

  test('texts are trimmed and multiSelect defaults to false', () => {
    const [made] = validateQuestionRequest({
      questions: [{ question: ' Why? ', header: ' H ', options: [option(' a'), option('b ')] }],
    })
    expect(made).toEqual({ question: 'Why?', header: 'H', options: [option('a'), option('b')], multiSelect: false })
  })

  test.each([
    ['no questions', { questions: [] }],
    ['five questions', { questions: [1, 2, 3, 4, 5].map((n) => ({ ...question, question: `${n}` })) }],
    ['the same question twice', { questions: [question, { ...question, question: ` ${question?.question}` }] }],
    ['one option', one({ options: [option('a')] })],
    ['five options', one({ options: ['a', 'b', 'c', 'd', 'e'].map(option) })],
    ['the same label twice', one({ options: [option('a'), option(' a')] })],
    ['a header of 13', one({ header: 'x'.repeat(13) })],
    ['a blank question', one({ question: ' ' })],
    ['an unknown field', one({ extra: 1 })],
    ['multiSelect that is no boolean', one({ multiSelect: 1 })],
    ['nothing', null],
  ])('%s is refused', (_, args) =>
    expect(refusal(() => validateQuestionRequest(args as JsonValue))?.code).toBe('question_invalid'),
  )

  test('a header of 12 astral characters is accepted', () => {
    expect(validateQuestionRequest(one({ header: '😀'.repeat(12) }) as unknown as JsonValue)).toHaveLength(1)
  })
})

describe('answers', () => {
  test('no path quotes question text', () => {
    const questions = validateQuestionRequest(QUESTIONS)
    const bad: JsonObject[] = [{ 'Which warehouse?': 7 }, { 'Which warehouse?': 'x'.repeat(8193) }, { secret: 'x' }]
    for (const answers of bad) expect(refusal(() => validateAnswer(questions, { answers }))?.path).toBe('$.answers')
  })
})
