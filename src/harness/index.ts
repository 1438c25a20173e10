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
export { runAttempt, START_BY_MS } from './attempt.ts'
export type { AttemptEnd, AttemptOptions, RunBindings } from './attempt-options.ts'
export {
  checkSuspension,
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
export {
  type Capability,
  type CapabilityHooks,
  type CapabilityState,
  CapabilityStates,
  defineCapability,
  type HookCall,
  type HookContext,
  type HookOutcome,
} from './capabilities/index.ts'
export { PERMISSION_DENIED, PERMISSION_REASON, resultSchemaId } from './classify.ts'
export * from './deferred/index.ts'
export { UNKNOWN_RESULT } from './drafts.ts'
export { DEFERRAL_UNAVAILABLE, POLICY_DENIED, POLICY_REASON } from './execute.ts'
export { CONTINUE } from './model-outcomes.ts'
export { abandonWaits, cancel, fail, leaveBranch } from './plan.ts'
export { openBatchCalls } from './plan-calls.ts'
export { INTERRUPTED_BEFORE_RESULT } from './prepare.ts'
export { type Reconciliation, reconcile } from './reconcile.ts'
export { definitionError, runError, stateError, usageMissing } from './run-errors.ts'
export { RunResult, type RunResultFields, type RunStatus, type SafeFailure } from './run-result.ts'
export { loadContent, type StateStore, stateStoreOn, storeContent, storeMissing, usesStore } from './state-store.ts'
export { steer } from './steer.ts'
export {
  type CapabilityStore,
  defineTool,
  externalTool,
  recoveryRetryable,
  type SubmissionContext,
  type Tool,
  type ToolContext,
} from './tool.ts'
export type { UsageLimits } from './usage-limits.ts'
