import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type Agent, defineAgent, defineTool, externalTool } from '../../../src/index.ts'
import { type ScriptEntry, type ScriptPart, scriptedModel } from '../../../src/models/index.ts'
import { effect } from './ledger.ts'
import { turnOf } from './prompt.ts'

export interface OrdersOptions {
  /** Where effects are written down. */
  ledger: string
  /** Upper bound of the milliseconds a tool spends before and after its effect. */
  paceMs?: number
  /** Milliseconds the model takes for each part it says. */
  thinkMs?: number
}

const input = z.object({ order: z.string(), part: z.number().int().default(0) })
const pause = (paceMs: number) => delay(Math.random() * paceMs)

/**
 * An agent that settles an order in four steps: looks it up and takes a first payment, asks a carrier to ship it (and a person to allow
 * a refund, for every fifth order), takes a second payment under a call id it used before, and says so.
 */
export function ordersAgent({ ledger, paceMs = 0, thinkMs = 0 }: OrdersOptions): Agent {
  const local = (name: string, more: { recovery?: 'retryable'; needsApproval?: boolean } = {}) =>
    defineTool({
      name,
      description: `Does ${name}`,
      input,
      ...more,
      execute: async ({ order }, { callId, idempotencyKey }) => {
        if (paceMs > 0) await pause(paceMs)
        effect(ledger, { tool: name, call: `${order}/${callId}`, key: idempotencyKey })
        if (paceMs > 0) await pause(paceMs)
        return { order, done: name }
      },
    })
  const ship = externalTool({
    name: 'ship',
    description: 'Asks the carrier to ship the order',
    provider: 'carrier',
    input,
    result: z.object({ parcel: z.string() }),
  })
  const tools = [local('look', { recovery: 'retryable' }), local('pay'), local('refund', { needsApproval: true }), ship]
  return defineAgent({
    name: 'orders',
    revision: '1',
    system: 'You settle orders.',
    tools,
    model: scriptedModel(answer, { delayMs: thinkMs }),
  })
}

const call = (id: string, name: string, args: { order: string; part?: number }): ScriptPart => ({ tool_call: { id, name, args } })

function answer(prompt: Parameters<typeof turnOf>[0]): ScriptEntry {
  const { text: order, step } = turnOf(prompt)
  if (step === 0) return { parts: [call('c1', 'look', { order }), call('c2', 'pay', { order, part: 1 })] }
  if (step === 1)
    return { parts: [call('s1', 'ship', { order }), ...(isRefunded(order) ? [call('r1', 'refund', { order })] : [])] }
  if (step === 2) return { parts: [call('c2', 'pay', { order, part: 2 })] }
  return { parts: [{ text: `settled ${order}` }] }
}

export const isRefunded = (order: string): boolean => Number(/\d+/.exec(order)?.[0]) % 5 === 0
