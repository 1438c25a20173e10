export * from './catalogue.ts'
export * from './codec.ts'
export * from './commit.ts'
export * from './envelope.ts'
