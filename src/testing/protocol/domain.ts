import { Payload } from '../../base/index.ts'
import type { EventDraft } from '../../events/index.ts'
import type { Folded } from '../../projections/index.ts'
import type { CommandKind } from './steps.ts'

// What writers do, in real events and on the real state, kept to what the protocol needs: decisions that depend on the whole state, on
// the current attempt, and on something being there.

export interface Command {
  /** Recorded with every event it leads to (`causation.command_id`), so a repeated command is recognised. */
  readonly id: string
  readonly kind: CommandKind
  /** Events it asks for, where it may be several. */
  readonly size: number
  /** The run to cancel. */
  readonly run: string
}

/** Answers that say that something is not there, or is not so. Given behind the read barrier only (R15). */
export type Negative = 'exists' | 'unknown-thread' | 'unknown-run' | 'not-current-attempt' | 'not-quarantined' | 'quarantined'

export type Proposal = { readonly drafts: readonly EventDraft[] } | { readonly negative: Negative }

const NOTHING = Payload.of(null)
const OPTIONS = Payload.of({})
const MAIN_RUN = 'main'
const AGENT = { name: 'model', revision: '1' }
const DIGEST = 'd'.repeat(64)

/** @param held the attempt of the thread's run that the writer took; 0 if it took none */
export function decide(folded: Folded, command: Command, writer: string, held: number): Proposal {
  const { state, quarantine } = folded
  if (command.kind === 'repair') {
    if (!quarantine) return { negative: 'not-quarantined' }
    return { drafts: [{ type: 'thread.repaired/1', data: { version: quarantine.version, reason: 'model' } }] }
  }
  if (quarantine) return { negative: 'quarantined' }
  if (command.kind === 'open') return folded.head.version > 0 ? { negative: 'exists' } : { drafts: opening(command, writer) }
  if (folded.head.version === 0) return { negative: 'unknown-thread' }
  if (!state.run && (command.kind === 'take' || command.kind === 'work')) return { negative: 'unknown-run' }
  switch (command.kind) {
    case 'take': {
      const attempt = attemptOf(folded) + 1
      return { drafts: [{ type: 'run.recovered/1', data: { run_id: MAIN_RUN, attempt, owner: ownerOf(writer), why: 'model' } }] }
    }
    case 'work':
      if (attemptOf(folded) !== held) return { negative: 'not-current-attempt' }
      return { drafts: times(command.size, (step) => worked(step)) }
    case 'start':
      return { drafts: times(command.size, (n) => requested(runId(command.id, n), command.id)) }
    case 'cancel':
      if (!state.requested.some((request) => request.runId === command.run)) return { negative: 'unknown-run' }
      return { drafts: [{ type: 'run.cancelled/1', data: { run_id: command.run, reason: 'model' } }] }
  }
}

/** The attempt that may work on the thread now. */
export const attemptOf = (folded: Folded): number => folded.state.run?.attempt ?? 0

/** The id of the n-th run a `start` asks for. */
export const runId = (commandId: string, n: number): string => `${commandId}.${n}`

/** A well-formed event that no thread can fold. */
export const unfoldableDraft: EventDraft = { type: 'run.completed/1', data: { run_id: 'no such run', output: NOTHING } }

/** True for an event made of {@link unfoldableDraft}. */
export const isUnfoldable = ({ type }: { readonly type: string }): boolean => type === unfoldableDraft.type

const ownerOf = (writer: string) => ({ id: writer, kind: 'engine' as const })

const opening = (command: Command, writer: string): EventDraft[] => [
  {
    type: 'thread.opened/1',
    data: {
      application_id: 'model',
      user_id: 'u',
      thread_id: 't',
      kind: 'harness',
      origin: { kind: 'new', state: null, parent: null },
    },
  },
  requested(MAIN_RUN, command.id),
  {
    type: 'run.started/1',
    data: {
      run_id: MAIN_RUN,
      invocation_id: MAIN_RUN,
      attempt: 1,
      owner: ownerOf(writer),
      agent: AGENT,
      tool_recovery: 'declared',
      trigger: { kind: 'input', continuation_ids: [] },
    },
  },
]

const requested = (run_id: string, command_id: string): EventDraft => ({
  type: 'run.requested/1',
  data: { run_id, agent: AGENT.name, input: null, answers: null, options: OPTIONS, command_id },
})

const worked = (step: number): EventDraft => ({
  type: 'model.requested/1',
  data: { step, model: 'model', settings_digest: DIGEST },
})

const times = (count: number, make: (n: number) => EventDraft): EventDraft[] => Array.from({ length: count }, (_, n) => make(n))
