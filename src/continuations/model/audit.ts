/** What happened to a continuation. */
export type AuditOperation =
  | 'suspended'
  | 'resolved'
  | 'armed'
  | 'claimed'
  | 'cancelled'
  | 'acknowledged'
  | 'renewed'
  | 'released'
export type AuditOutcome = 'committed' | 'failed'

/** One line of audit: what, by whom, with what end, on which log. No id, code, schema, tenant or value is ever in it (§4). */
export interface AuditRecord {
  readonly logger: 'threadlog.continuation.audit'
  readonly level: 'info'
  readonly event: `continuation.${AuditOperation}`
  readonly attributes: { operation: AuditOperation; trigger: 'agent'; outcome: AuditOutcome; backend: string }
}

export type AuditSink = (record: AuditRecord) => void

/** Tells `sink` of one attempt; what the sink throws stays with it. */
export function auditContinuation(
  sink: AuditSink | undefined,
  o: { operation: AuditOperation; outcome: AuditOutcome; backend: string },
): void {
  try {
    sink?.({
      logger: 'threadlog.continuation.audit',
      level: 'info',
      event: `continuation.${o.operation}`,
      attributes: { operation: o.operation, trigger: 'agent', outcome: o.outcome, backend: o.backend },
    })
  } catch {
    // Auditing never decides the fate of an operation.
  }
}
