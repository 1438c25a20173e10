import { type JsonObject, reject } from '../../base/index.ts'
import { detachedList, detachedMap, wrongType } from './detach.ts'
import { toolApproved } from './outcomes.ts'
import type { ApprovalDecision, CallValue, DeferredRequest, DeferredRequestsFields, DeferredResultsFields } from './types.ts'
import { objectOf, requestsOfWire, requestsWire, resultsOfWire, resultsWire } from './wire.ts'

// The value a host resumes with (state spec §3.2): what was asked, what came of it. Built from live values, checked by `preflight`. Frozen, and
// detached from what it was made of.

/** What came of each request, by id of its target call. */
export class DeferredToolResults {
  readonly calls: Readonly<Record<string, CallValue>>
  readonly approvals: Readonly<Record<string, ApprovalDecision>>
  readonly metadata: Readonly<Record<string, unknown>>

  /** @throws ThreadlogError `argument_type_invalid` for values that cannot be copied */
  constructor(o: DeferredResultsFields = {}) {
    this.calls = detachedMap(o.calls ?? {}, 'calls')
    this.approvals = detachedMap(o.approvals ?? {}, 'approvals')
    this.metadata = detachedMap(o.metadata ?? {}, 'metadata')
    Object.freeze(this)
  }

  toJSON(): JsonObject {
    return resultsWire(this)
  }

  /** Reads the wire form: `{"value"}`, `{"tool_return"}`, `{"tool_failed"}`; `true`, `false`, `{"approved"}`, `{"denied"}`. */
  static parse(value: unknown): DeferredToolResults {
    return new DeferredToolResults(resultsOfWire(value))
  }
}

/** What a suspended run waits for. */
export class DeferredRequests {
  readonly calls: readonly DeferredRequest[]
  readonly approvals: readonly DeferredRequest[]
  /** By id of the target call: what the tool or the harness attached. Never proof of anything. */
  readonly metadata: Readonly<Record<string, unknown>>

  /** @throws ThreadlogError `argument_type_invalid` for values that cannot be copied */
  constructor(o: DeferredRequestsFields) {
    this.calls = detachedList(o.calls ?? [], 'calls')
    this.approvals = detachedList(o.approvals ?? [], 'approvals')
    this.metadata = detachedMap(o.metadata ?? {}, 'metadata')
    Object.freeze(this)
  }

  /**
   * Results for these requests.
   * @param o.approveAll approves what `approvals` does not decide; it never answers a call, and so no question
   * @throws ThreadlogError `argument_value_invalid` for an id that was not asked for
   */
  buildResults(o: DeferredResultsFields & { approveAll?: boolean } = {}): DeferredToolResults {
    const { approveAll = false, calls = {}, approvals = {}, metadata = {} } = o
    const asked = (requests: readonly DeferredRequest[]) => new Set(requests.map(({ targetCall }) => targetCall.toolCallId))
    checkKnown(Object.keys(calls), asked(this.calls), 'calls')
    checkKnown(Object.keys(approvals), asked(this.approvals), 'approvals')
    const all = approveAll ? Object.fromEntries([...asked(this.approvals)].map((id) => [id, toolApproved()])) : {}
    return new DeferredToolResults({ calls, approvals: { ...all, ...approvals }, metadata })
  }

  toJSON(): JsonObject {
    return requestsWire(this)
  }

  /** Reads the wire form. @throws ThreadlogError `argument_type_invalid` */
  static parse(value: unknown): DeferredRequests {
    return new DeferredRequests(requestsOfWire(value))
  }
}

/** Answers to a batch, as a host gives them to the next run. `recovery`: what an interrupted run had accepted before. */
export class DeferredToolResume {
  readonly requests: DeferredRequests
  readonly results: DeferredToolResults
  readonly recovery: boolean

  /** @throws ThreadlogError `argument_type_invalid` */
  constructor(o: { requests: DeferredRequests; results: DeferredToolResults; recovery?: boolean }) {
    if (!(o.requests instanceof DeferredRequests)) throw wrongType('requests', 'DeferredRequests')
    if (!(o.results instanceof DeferredToolResults)) throw wrongType('results', 'DeferredToolResults')
    this.requests = o.requests
    this.results = o.results
    this.recovery = o.recovery ?? false
    Object.freeze(this)
  }

  toJSON(): JsonObject {
    return { recovery: this.recovery, requests: this.requests.toJSON(), results: this.results.toJSON() }
  }

  /** Reads the wire form. @throws ThreadlogError `argument_type_invalid` */
  static parse(value: unknown): DeferredToolResume {
    const { requests, results, recovery = false } = objectOf(value, 'deferredResume') as Record<string, unknown>
    return new DeferredToolResume({
      requests: DeferredRequests.parse(requests),
      results: DeferredToolResults.parse(results),
      recovery: recovery === true,
    })
  }
}

function checkKnown(ids: readonly string[], known: ReadonlySet<string>, path: string): void {
  if (ids.some((id) => !known.has(id)))
    throw reject('argument_value_invalid', 'An id was not asked for.', { path, expected: 'ids of the requests' })
}
