/**
 * A deep, frozen copy: what was copied may change, and the copy may be handed to anybody. NaN, infinities and cycles are copied as they are.
 * @throws DataCloneError for functions, handles, and whatever else cannot be copied
 */
export function frozenCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return typeof value === 'function' ? structuredClone(value) : value
  return frozen(structuredClone(value))
}

/** The value itself, frozen through and through. */
export function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const item of Object.values(value)) frozen(item)
  return value
}
