import type { SqlValue } from '../../log/index.ts'

/** The conditions of a query and their values, as they come together. */
export interface Conditions {
  readonly values: readonly SqlValue[]
  add(part: string, ...given: SqlValue[]): void
  /** `WHERE …`, or nothing. */
  text(): string
}

export function conditions(): Conditions {
  const parts: string[] = []
  const values: SqlValue[] = []
  return {
    values,
    add(part, ...given) {
      parts.push(part)
      values.push(...given)
    },
    text: () => (parts.length > 0 ? `WHERE ${parts.join(' AND ')}` : ''),
  }
}
