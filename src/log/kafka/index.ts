export { credentials, type KafkaAddress, kafkaAddress } from './address.ts'
export { type KafkaLogOptions, openKafkaLog } from './backend.ts'
export { clientOf, type KafkaConnection } from './connection.ts'
export { type Diagnosis, diagnoseKafka, type ReplicaReport } from './diagnosis.ts'
export {
  checkSchemas,
  fetchResultSchemas,
  type RegisteredSchema,
  type RegistryConnection,
  registerSchemas,
  type SchemaFinding,
} from './registry.ts'
export { checkTopics, createTopics, type TopicFinding, type TopicLayout } from './topic-admin.ts'
export { DEFAULT_PARTITIONS, DEFAULT_PREFIX } from './topic-plan.ts'
