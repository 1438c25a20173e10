import { describe, expect, test } from 'vitest'
import { schemaText } from '../../src/continuations/ids.ts'
import { continuationSchemaId, continuationSchemaIdOfText } from '../../src/continuations/index.ts'
import { failureSchema } from '../../src/continuations/result.ts'
import { groups } from '../support/vectors/continuation/index.ts'
import { jsonText, live } from '../support/vectors/continuation/values.ts'

const vectorsOf = (name: string) => groups().find(({ group }) => group === name)?.vectors ?? []

describe('the text behind a schema id', () => {
  const recorded = vectorsOf('schema-id').filter((vector) => vector.expect.canonical && !vector.python_specific)
  const values = recorded.filter(({ schema }) => jsonText(schema) === undefined)

  test.each(values)('$id: $title', ({ schema, expect: wanted }) => {
    expect(schemaText(live(schema))).toBe(wanted.canonical)
  })

  test('a schema and its text have one id, but for floats without a fraction', () => {
    expect(continuationSchemaIdOfText('{"b": 1, "a": [1.5, "\\u00e9"]}')).toBe(continuationSchemaId({ a: [1.5, 'é'], b: 1 }))
    expect(continuationSchemaIdOfText('{"a": 1.0}')).not.toBe(continuationSchemaIdOfText('{"a": 1}'))
    expect(() => continuationSchemaIdOfText('{')).toThrow(expect.objectContaining({ code: 'continuation_invalid' }))
  })
})

describe('failures of a record', () => {
  test.each(vectorsOf('failure'))('$id: $title', ({ args, expect: wanted }) => {
    const parsed = failureSchema.safeParse(live(args))
    if (wanted.error) expect(parsed.success).toBe(false)
    else expect(parsed.data).toEqual(wanted.value)
  })
})
