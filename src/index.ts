export { isThreadlogError, type JsonObject, type JsonValue, ThreadlogError } from './base/index.ts'
export {
  type AuditRecord,
  auditContinuation,
  CheckpointConflictError,
  type ConflictReason,
  ContinuationConflictError,
  ContinuationError,
  ContinuationFailure,
  ContinuationProvider,
  ContinuationRecord,
  type ContinuationStatus,
  type ContinuationStore,
  ContinuationValidationError,
  type ContinuationValidator,
  continuationSchemaId,
  continuationSchemaIdOfText,
  encodeResult,
  externalIdKey,
  type Framework,
  isContinuationStore,
  LogContinuationStore,
  type PendingAction,
  type Principal,
  PrincipalGrantSnapshot,
  ProviderPendingContinuation,
  type Receipt,
  type ResultRecord,
  ResumeArtifact,
  type RunRecord,
  RunScope,
  type SweepOptions,
  type Swept,
  submissionKey,
  sweepContinuations,
} from './continuations/index.ts'
export * from './engine/index.ts'
export type { SchemaSource, ThreadKey } from './events/index.ts'
export { type Agent, aiTools, defineAgent, defineTool, externalTool, type Tool, type ToolContext } from './harness/index.ts'
export type { LogBackend, RecordedEvent } from './log/index.ts'
export { HarnessState } from './messages/index.ts'
