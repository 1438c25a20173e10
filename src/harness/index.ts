export {
  type Agent,
  defineAgent,
  type ModelRecovery,
  type Permission,
  type Policy,
  type PolicyCall,
  type PolicyDecision,
  proposalDigest,
  QUESTION_TOOL,
  type Reviewer,
  seenBy,
  toolIdentity,
} from './agent.ts'
export { type AiTool, aiTools } from './ai-tools.ts'
export { type AttemptEnd, type AttemptOptions, type RunBindings, runAttempt, START_BY_MS } from './attempt.ts'
export {
  checkToolRecovery,
  fork,
  open,
  type Parent,
  type RunRecordOptions,
  type RunRequest,
  recordedOptions,
  recover,
  request,
  resume,
  SURFACE_MISMATCH,
  start,
} from './begin.ts'
export { callerMismatch } from './caller-answers.ts'
export { CapabilityStates, type CapabilityStore } from './capability-states.ts'
export { PERMISSION_DENIED, PERMISSION_REASON, resultSchemaId } from './classify.ts'
export * from './deferred/index.ts'
export { UNKNOWN_RESULT } from './drafts.ts'
export { DEFERRAL_UNAVAILABLE, POLICY_DENIED, POLICY_REASON } from './execute.ts'
export { CONTINUE } from './model-outcomes.ts'
export { abandonWaits, cancel, fail } from './plan.ts'
export { openBatchCalls } from './plan-calls.ts'
export { INTERRUPTED_BEFORE_RESULT } from './prepare.ts'
export { type Reconciliation, reconcile } from './reconcile.ts'
export { definitionError, runError, stateError } from './run-errors.ts'
export { NO_USAGE, RunResult, type RunResultFields, type RunStatus, type RunUsage, type SafeFailure } from './run-result.ts'
export { loadContent, type StateStore, stateStoreOn, storeContent, storeMissing, usesStore } from './state-store.ts'
export { steer } from './steer.ts'
export { defineTool, externalTool, recoveryRetryable, type SubmissionContext, type Tool, type ToolContext } from './tool.ts'
export { type UsageLimits, usageOf } from './usage-limits.ts'
