export { type KafkaLogOptions, openKafkaLog } from './backend.ts'
export { clientOf, type KafkaConnection } from './connection.ts'
export { checkTopics, createTopics, type TopicFinding, type TopicLayout } from './topic-admin.ts'
export { DEFAULT_PARTITIONS, DEFAULT_PREFIX } from './topic-plan.ts'
