export { EARLY_DEFAULTS, type EarlyResults, HELD_PER_ID } from './early/hold.ts'
export { logProjectors } from './early/receipts-out.ts'
export { type HeldSweep, settleHeldFor, settleHeldOf, sweepHeld } from './early/settle.ts'
export { encodeResult, type ResultRecord } from './encode-result.ts'
export { EXPIRED, type ExpiryOptions, expire, expireDue, expireThread, isAnyOverdue } from './expire.ts'
export type { Lease } from './foreign/holder.ts'
export { isWithdrawn, type Reserved } from './foreign/runs.ts'
export type { RunRecord } from './foreign/views.ts'
export { answer, approval, denial, humanContext } from './human.ts'
export {
  ANSWER_SCHEMA,
  APPROVAL_SCHEMA,
  continuationSchemaId,
  continuationSchemaIdOfText,
  externalIdKey,
  HUMAN_PROVIDER,
  TOOL_APPROVAL,
  TOOL_CALL,
  USER_QUESTION,
} from './ids.ts'
export { type Judgement, type Refusal, type Verdict, verdicts } from './judgement.ts'
export { jsonValue } from './model/arguments.ts'
export { type AuditRecord, type AuditSink, auditContinuation } from './model/audit.ts'
export {
  CheckpointConflictError,
  type ConflictReason,
  ContinuationConflictError,
  ContinuationError,
  ContinuationValidationError,
} from './model/errors.ts'
export { ContinuationFailure } from './model/failure.ts'
export { type Principal, PrincipalGrantSnapshot } from './model/grants.ts'
export {
  type ContinuationFields,
  ContinuationRecord,
  type ContinuationStatus,
  type PendingAction,
  ProviderPendingContinuation,
} from './model/record.ts'
export { type Framework, ResumeArtifact } from './model/resume.ts'
export { RunScope, type RunScopeFields } from './model/scope.ts'
export { submissionKey } from './model/submission-key.ts'
export { externalIdSchema, isBlank, nameSchema } from './names.ts'
export {
  type Answer,
  type Approval,
  answerJson,
  approvalSchema,
  type Question,
  questionRequestSchema,
  validateAnswer,
  validateApproval,
  validateQuestionRequest,
} from './outcome.ts'
export { ContinuationProvider, type ContinuationValidator } from './provider.ts'
export {
  decodeReceipt,
  encodeReceipt,
  makeReceipt,
  RECEIPT,
  type Receipt,
  receiptRecord,
  receiptSchema,
  receiptSubject,
  type Submitted,
} from './receipt.ts'
export {
  type Address,
  MAX_RECORD_BYTES,
  MAX_RESULT_BYTES,
  outcomeDigest,
  type Parsed,
  parseResult,
  type ResultLimits,
  resultRecordSchema,
  type Submission,
  type SubmittedOutcome,
  type Unusable,
} from './result.ts'
export { ContinuationRuntime, type RuntimeOptions } from './runtime.ts'
export { apiSource, sourceText, topicSource } from './source.ts'
export type { Waiting } from './store/log-leases.ts'
export { type HostWaits, LogContinuationStore } from './store/log-store.ts'
export { type Holder, Reservations, reservationStream, type Taking, type Unique } from './store/reservations.ts'
export { type ResumeOptions, type Resumption, resumeContinuation } from './store/resume.ts'
export { type ContinuationStore, isContinuationStore, type LeaseAt } from './store/store.ts'
export { type SweepOptions, type Swept, sweepContinuations } from './store/sweep.ts'
export {
  type Located,
  locate,
  outcomeDraft,
  refused,
  type Settled,
  type SubmitContext,
  type SubmitDeps,
  settleResult,
  submitRecord,
  submitResult,
  type WaitLookup,
} from './submit.ts'
export { type Validator, type ValidatorEntry, type Validators, validatorsOf } from './validators.ts'
export { type Authority, type JudgedThread, judge } from './verdict.ts'
