import type { Projector } from '../../log/index.ts'
import { Folds, indexProjectors, SNAPSHOTS } from '../../projections/index.ts'
import { decodeReceipt, receiptRecord, receiptSubject } from '../receipt.ts'

/** Publishes the final receipt of each result that was held, in the transaction of the event that records it. */
export function heldReceipts(folds: Folds = new Folds()): Projector {
  return {
    name: 'held-receipts',
    version: 1,
    schema: SNAPSHOTS,
    drop: '',
    publishes: true,
    apply(tx, events) {
      for (const { steps } of folds.steps(tx, events))
        for (const { event } of steps) {
          if (event?.type !== 'reservation.settled/1') continue
          const receipt = decodeReceipt(event.data.receipt.bytes)
          tx.publish('receipts', receiptRecord(receiptSubject(receipt) ?? '', receipt, event.time))
        }
    },
  }
}

/** All projectors of one log. */
export const logProjectors = (folds: Folds = new Folds()): Projector[] => [...indexProjectors(folds), heldReceipts(folds)]
