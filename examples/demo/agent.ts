import { z } from 'zod'
import { defineAgent, defineTool, externalTool } from '../../src/index.ts'
import { chatModel } from '../support/model.ts'
import type { Effect } from './effects.ts'

const SYSTEM = `You settle refunds, one tool call at a time. Look the order up, then refund it, then pay the same amount out by bank
transfer to the customer's IBAN. At the end, tell the customer the amount and the payment reference in one sentence. If nobody knows
whether a refund was booked, do not try again: say that a colleague will check.`

const ORDERS: Record<string, { item: string; cents: number; iban: string }> = {
  '991': { item: 'Espresso cups, set of six', cents: 4200, iban: 'DE89370400440532013000' },
}

/** @param effect does what a tool does to the world; may never return */
export function supportAgent(effect: (done: Omit<Effect, 'pid'>) => Promise<void>) {
  const lookup = defineTool({
    name: 'lookup_order',
    description: 'Find an order: its item, price in cents and the IBAN of the customer',
    input: z.object({ order: z.string() }),
    recovery: 'retryable',
    async execute({ order }, { idempotencyKey }) {
      await effect({ tool: 'lookup_order', order, key: idempotencyKey })
      return { order, ...ORDERS[order] }
    },
  })
  const refund = defineTool({
    name: 'refund',
    description: 'Book the refund of an order',
    input: z.object({ order: z.string(), cents: z.int().positive() }),
    needsApproval: true,
    async execute({ order, cents }, { idempotencyKey }) {
      await effect({ tool: 'refund', order, key: idempotencyKey })
      return { booked: `R-${order}`, cents }
    },
  })
  const payout = externalTool({
    name: 'payout',
    description: 'Pay out by bank transfer',
    provider: 'payouts',
    input: z.object({ iban: z.string(), cents: z.int().positive() }),
    result: z.object({ reference: z.string() }),
  })
  return defineAgent({ name: 'support', revision: '1', model: chatModel(), system: SYSTEM, tools: [lookup, refund, payout] })
}
