import { nonBlank } from './arguments.ts'

/** Who owns a run: application, user, session (threadlog's thread) and run. */
export interface RunScopeFields {
  applicationId: string
  userId: string
  sessionId: string
  runId: string
}

/** The ownership key of a run, compared field by field (continuation spec §1.1). Texts are kept as they are, not trimmed. */
export class RunScope implements RunScopeFields {
  readonly applicationId: string
  readonly userId: string
  readonly sessionId: string
  readonly runId: string

  /** @throws ThreadlogError `invalid_argument` */
  constructor(o: RunScopeFields) {
    this.applicationId = nonBlank(o.applicationId, 'applicationId')
    this.userId = nonBlank(o.userId, 'userId')
    this.sessionId = nonBlank(o.sessionId, 'sessionId')
    this.runId = nonBlank(o.runId, 'runId')
    Object.freeze(this)
  }

  equals(other: RunScopeFields): boolean {
    return this.runId === other.runId && this.sameSession(other)
  }

  sameSession(other: RunScopeFields): boolean {
    return this.applicationId === other.applicationId && this.userId === other.userId && this.sessionId === other.sessionId
  }
}
