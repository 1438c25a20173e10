import type { JsonObject, JsonValue } from '../base/index.ts'
import type { Classified } from './classify.ts'
import type { HookFailure } from './hook-failure.ts'

/** An effect to begin once its `tool.dispatched` is accepted. */
export type Start = Extract<Classified, { do: 'dispatch' }> & { callId: string; number: number; key: string }

/** What became of one dispatched call. */
export type Executed =
  /** `bytes` is what its event takes of a commit. */
  | { is: 'returned'; content: JsonValue; metadata?: JsonValue; bytes: number }
  | { is: 'failed'; content: JsonValue }
  | { is: 'denied'; content: JsonValue }
  /** The tool asks the model for better arguments. */
  | { is: 'retried'; content: string }
  /** The result, or the permission, comes from outside; `externalId`: under the id of a job that was submitted. */
  | { is: 'deferred'; kind: 'external' | 'approval'; metadata: JsonObject; externalId?: string }
  /** It never began: the permission to start had run out (R20). */
  | { is: 'missed' }
  | { is: 'threw'; error: unknown; errorName: string }
  /** A hook of a capability kept it from running. */
  | { is: 'prevented'; failure: HookFailure }
