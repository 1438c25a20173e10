export * from './outcomes.ts'
export { preflight } from './preflight.ts'
export { remaining } from './remaining.ts'
export * from './values.ts'
