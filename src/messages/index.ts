export type * from './content-types.ts'
export type * from './types.ts'
export * from './wire-keys.ts'
