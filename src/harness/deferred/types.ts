/** A call as the model made it. `args` as in the message: text, an object, or nothing. */
export interface DeferredCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly args: unknown
}

/**
 * A call waiting for an answer. For an ordinary call both calls are equal; a proxy tool may forward to another one, and then results are keyed by
 * the id of the target. `identity` is the stable identity of the target tool.
 */
export interface DeferredRequest {
  readonly modelCall: DeferredCall
  readonly targetCall: DeferredCall
  readonly identity: string
}

/** A plain value, a {@link toolReturn} or a {@link toolFailed}. */
export type CallValue = unknown
/** A boolean, a {@link toolApproved} or a {@link toolDenied}. */
export type ApprovalDecision = unknown

export interface DeferredRequestsFields {
  calls?: readonly DeferredRequest[]
  approvals?: readonly DeferredRequest[]
  metadata?: Readonly<Record<string, unknown>>
}

export interface DeferredResultsFields {
  calls?: Readonly<Record<string, CallValue>>
  approvals?: Readonly<Record<string, ApprovalDecision>>
  metadata?: Readonly<Record<string, unknown>>
}
