export type { Actor, Causation } from './actor.ts'
export type { AvroRecord } from './avro-schema.ts'
export * from './catalogue.ts'
export { applicationSource, type CloudEvent, cloudEvent } from './cloud-event.ts'
export * from './codec.ts'
export * from './commit.ts'
export { type EdgeCodec, edgeCodec, packagedEdges } from './edge-codec.ts'
export { type EdgeData, type EdgeType, edges } from './edges.ts'
export * from './envelope.ts'
export { UNRECOGNISED } from './fields.ts'
export { bindContent, eachPayload, INLINE_PAYLOAD, payloadsOf } from './payloads.ts'
export { sameSchema } from './schema-match.ts'
export {
  type EventSchema,
  type FileSchemas,
  fileSchemas,
  memorySchemas,
  packagedSchemas,
  type SchemaSource,
} from './schema-source.ts'
export type { TypeOptions } from './type-table.ts'
export { type Upcaster, type Upcasters, upcaster, upcasters } from './upcast.ts'
