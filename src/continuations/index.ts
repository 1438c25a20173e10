export { encodeResult, type ResultRecord } from './encode-result.ts'
export { answer, approval, denial, humanContext } from './human.ts'
export {
  ANSWER_SCHEMA,
  APPROVAL_SCHEMA,
  continuationSchemaId,
  externalIdKey,
  HUMAN_PROVIDER,
  TOOL_APPROVAL,
  TOOL_CALL,
  USER_QUESTION,
} from './ids.ts'
export { type Judgement, type Refusal, type Verdict, verdicts } from './judgement.ts'
export { nameSchema } from './names.ts'
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
export {
  decodeReceipt,
  encodeReceipt,
  makeReceipt,
  RECEIPT,
  type Receipt,
  receiptRecord,
  receiptSchema,
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
export { apiSource, sourceText, topicSource } from './source.ts'
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
