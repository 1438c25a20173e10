import type { CheckpointRow, ReceiptRow } from './edges.ts'
import type { Effect } from './effects.ts'
import type { Verified } from './facts.ts'
import type { TimelineEntry } from './notes.ts'
import type { Moment } from './story.ts'

/** Everything the demo found out. */
export interface Facts {
  input: string
  model: string
  payouts: string
  result: { status: string; output: unknown; failure: unknown }
  effects: Effect[]
  told: { result_id: string; verdict: string }[]
  kills: Moment[]
  timeline: TimelineEntry[]
  receipts: ReceiptRow[]
  checkpoints: CheckpointRow[]
  verify: Verified
}

export interface Check {
  claim: string
  ok: boolean
}

/** What must be so, whichever model played. */
export function checkAll(facts: Facts): Check[] {
  const { effects, verify } = facts
  const lookups = effects.filter((effect) => effect.tool === 'lookup_order')
  const [first, second] = lookups
  const verdicts = facts.told.map((receipt) => receipt.verdict).join(' ')
  const last = facts.checkpoints.at(-1)
  return [
    { claim: 'the run completed', ok: facts.result.status === 'completed' },
    {
      claim: 'lookup_order ran twice under one key',
      ok: lookups.length === 2 && first?.key === second?.key && first?.pid !== second?.pid,
    },
    { claim: 'refund ran once', ok: effects.filter((effect) => effect.tool === 'refund').length === 1 },
    { claim: 'the payout counted once', ok: verdicts === 'accepted duplicate conflict' },
    { claim: 'the last checkpoint is the end', ok: last?.status === 'completed' && last.version === verify.events },
    { claim: 'the hash chain is whole', ok: verify.chain },
    { claim: 'replay gives the same state', ok: verify.replayed === verify.live },
    ...(verify.command ? [{ claim: 'threadlog verify agrees', ok: verify.command.ok }] : []),
  ]
}
