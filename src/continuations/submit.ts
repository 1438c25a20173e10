import { isThreadlogError, type Payload } from '../base/index.ts'
import type { Actor, EdgeCodec, EventDraft, Source, StreamKey } from '../events/index.ts'
import { type Decision, findWait, type ThreadState, type ThreadStore, type Wait } from '../projections/index.ts'
import { type EarlyResults, hold } from './early/hold.ts'
import type { Judgement, Verdict } from './judgement.ts'
import { makeReceipt, type Receipt, type Submitted } from './receipt.ts'
import { parseResult, type ResultLimits, type Submission } from './result.ts'
import { sourceText } from './source.ts'
import { type Validators, validateValue } from './validators.ts'
import { type Authority, type JudgedThread, judge } from './verdict.ts'

export interface Located {
  readonly stream: StreamKey
  readonly continuationId: string
}

/** Where a wait is found. May lag behind the log; whoever asks waits for the log before believing that there is none. */
export interface WaitLookup {
  byContinuationId(id: string): Located | undefined | Promise<Located | undefined>
  byExternalId(application: string, provider: string, externalId: string): Located | undefined | Promise<Located | undefined>
}

export interface SubmitDeps {
  readonly store: ThreadStore
  readonly lookup: WaitLookup
  readonly validators: Validators
  /** The application meant by a submission that names none. */
  readonly application: string
  readonly limits?: ResultLimits
  /** With the schemas that records in Avro may be written with. Default: those of this package. */
  readonly codec?: EdgeCodec
  /** Which results may come before their wait. Default: none. */
  readonly early?: EarlyResults | undefined
  /** Appends what `decide` decides, however often the thread changes since it was `judged`. Default: `store.commit`. */
  commit?(stream: StreamKey, decide: (state: ThreadState) => Decision | undefined, judged: ThreadState): Promise<unknown>
}

/** Who submits, through which way in, and what that way in is entitled to. */
export interface SubmitContext {
  readonly actor: Actor
  readonly source: Source
  readonly authority: Authority
}

/** What became of a submission. */
export interface Settled {
  /** For the submitter. */
  readonly receipt: Receipt
  /** For the operator: tells `wrong-scope` from `unknown`. */
  readonly verdict: Verdict
  /** The wait meant, if there is one. */
  readonly located: Located | undefined
}

/** Finds the wait a submission means. No answer is final only after a read barrier (R15). */
export async function locate({ lookup, application }: SubmitDeps, submission: Submission): Promise<Located | undefined> {
  const { address, provider } = submission
  if ('continuation_id' in address) return lookup.byContinuationId(address.continuation_id)
  const named = submission.application_id
  const located = await lookup.byExternalId(named ?? application, provider, address.external_id)
  // Applications may share a log. An external id that is the wait's own id is found without knowing whose it is; the scope is judged anyway.
  return located ?? (named === undefined ? lookup.byContinuationId(address.external_id) : undefined)
}

/**
 * Judges a submission and, if it is accepted, appends the outcome to its thread (design §6). Resolves with the verdict; the
 * thread may change meanwhile as often as it likes. Safe to repeat: the same submission gets the same verdict.
 * @param found where the wait is, if the caller has located it
 * @throws ThreadlogError with disposition `retry`: nothing was decided, submit it again · `fatal`: the log needs attention
 */
export async function settleResult(
  deps: SubmitDeps,
  submission: Submission,
  context: SubmitContext,
  found?: Located,
): Promise<Settled> {
  let located = found
  let judgement: Judgement = judge(undefined, undefined, submission, context)
  if (judgement.verdict !== 'forbidden') {
    located ??= await locate(deps, submission)
    if (located) judgement = await settleAt(deps, located, submission, context)
    if (judgement.verdict === 'unknown' || judgement.verdict === 'wrong-scope') {
      await deps.store.backend.events.barrier(located && deps.store.backend.events.partitionOf(located.stream))
      located = await locate(deps, submission)
      judgement = located ? await settleAt(deps, located, submission, context) : await hold(deps, submission, context)
    }
  }
  const receipt = makeReceipt(context.source, submission, judgement)
  return { receipt, verdict: judgement.verdict, located: judgement.verdict === 'unknown' ? undefined : located }
}

/** {@link settleResult}, for who needs the receipt only. */
export const submitResult = async (deps: SubmitDeps, submission: Submission, context: SubmitContext): Promise<Receipt> =>
  (await settleResult(deps, submission, context)).receipt

/** Parses a record and settles it. @throws as {@link settleResult}; a record that cannot be read is a verdict */
export async function submitRecord(
  deps: SubmitDeps,
  record: Uint8Array | string | object,
  context: SubmitContext,
): Promise<Settled> {
  const parsed = parseResult(record, deps.limits, deps.codec)
  return 'submission' in parsed ? settleResult(deps, parsed.submission, context) : refused(context.source, parsed, parsed.refusal)
}

/** The settlement of a submission that no wait was looked at for. */
export const refused = (source: Source, submitted: Submitted, judgement: Judgement): Settled => ({
  receipt: makeReceipt(source, submitted, judgement),
  verdict: judgement.verdict,
  located: undefined,
})

async function settleAt(deps: SubmitDeps, located: Located, submission: Submission, context: SubmitContext): Promise<Judgement> {
  const { stream, continuationId } = located
  const look = (thread: JudgedThread) => judge(thread, continuationId, submission, context)
  const { state, quarantine } = await deps.store.fold(stream)
  const before = look({ state, quarantined: quarantine !== undefined })
  if (before.verdict !== 'accepted' || before.recorded) return before
  const outcome = await acceptable(deps, findWait(state, continuationId) as Wait, submission)
  if ('verdict' in outcome) return outcome
  return append(deps, located, submission, context, outcome, look, state)
}

type AcceptedOutcome = { readonly value: Payload } | { readonly failure: { code: string; retryable: boolean } }

async function acceptable(deps: SubmitDeps, wait: Wait, { outcome }: Submission): Promise<AcceptedOutcome | Judgement> {
  return 'failure' in outcome ? outcome : validateValue(deps.validators, wait, outcome.result)
}

async function append(
  { store, commit = (at, decide) => store.commit(at, decide, Number.POSITIVE_INFINITY) }: SubmitDeps,
  { stream, continuationId }: Located,
  submission: Submission,
  { actor, source }: SubmitContext,
  outcome: AcceptedOutcome,
  look: (thread: JudgedThread) => Judgement,
  judged: ThreadState,
): Promise<Judgement> {
  const now = store.clock.now()
  const context = { stream, now, actor, runId: null, attempt: null, commandId: source.command_id }
  let judgement: Judgement = { verdict: 'unknown' }
  try {
    await commit(
      stream,
      (state): Decision | undefined => {
        judgement = look({ state, quarantined: false })
        if (judgement.verdict !== 'accepted' || judgement.recorded) return undefined
        const wait = findWait(state, continuationId) as Wait
        return { context, drafts: [outcomeDraft(wait, submission, source, outcome)] }
      },
      judged,
    )
    return judgement
  } catch (error) {
    if (isThreadlogError(error, 'thread_quarantined')) return { verdict: 'quarantined' }
    throw error
  }
}

/** The event of an accepted result. */
export function outcomeDraft(wait: Wait, submission: Submission, source: Source, outcome: AcceptedOutcome): EventDraft {
  const common = {
    continuation_id: wait.id,
    revision: wait.revision + 1,
    result_id: submission.result_id ?? sourceText(source),
    digest: submission.digest,
    source,
  }
  return 'failure' in outcome
    ? { type: 'continuation.failed/1', data: { ...common, failure: outcome.failure } }
    : { type: 'continuation.completed/1', data: { ...common, value: outcome.value } }
}
