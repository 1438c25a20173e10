export * from './log-conformance.ts'
