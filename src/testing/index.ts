export * from './continuation-conformance.ts'
export * from './log-conformance.ts'
export * from './protocol/index.ts'
