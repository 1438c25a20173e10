import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type Agent, defineAgent, defineTool, externalTool } from '../../../src/index.ts'
import { type ScriptEntry, type ScriptPart, scriptedModel } from '../../../src/models/index.ts'
import { effect } from '../processes/ledger.ts'
import { turnOf } from '../processes/prompt.ts'
import { EARLY_MS, FREIGHT, isEarly, jobId } from './jobs.ts'

export interface StormAgentOptions {
  /** Where effects are written down. */
  ledger: string
  /** Upper bound of the milliseconds a tool spends before and after its effect. */
  paceMs: number
  /** More of the rare jobs, for a storm of few orders. */
  dense?: boolean
}

export const AGENT = 'storm'
export const CARRIER = 'carrier'

/** Tools that may run again under the same key; every other one must not. */
export const RETRYABLE = new Set(['look', 'count', FREIGHT])

const input = z.object({ order: z.string(), part: z.number().int().default(0) })

/**
 * An agent whose orders take every path there is: local tools of both kinds, beside each other and alone, one call id used twice,
 * one or two carriers, a local call beside an external one, a person's decision.
 */
export function stormAgent({ ledger, paceMs, dense = false }: StormAgentOptions): Agent {
  const local = (name: string, more: { recovery?: 'retryable'; needsApproval?: boolean; sequential?: boolean } = {}) =>
    defineTool({
      name,
      description: `Does ${name}`,
      input,
      ...more,
      ...(RETRYABLE.has(name) ? { recovery: 'retryable' as const } : {}),
      execute: async ({ order, part }, { idempotencyKey }) => {
        await delay(Math.random() * paceMs)
        effect(ledger, { tool: name, call: `${order}/${part}`, key: idempotencyKey })
        await delay(Math.random() * paceMs)
        return { order, done: name }
      },
    })
  const ship = externalTool({
    name: 'ship',
    description: 'Asks a carrier to ship the order',
    provider: CARRIER,
    input,
    result: z.object({ parcel: z.string() }),
  })
  const freight = externalTool({
    name: FREIGHT,
    description: 'Begins a job of a freight company',
    provider: FREIGHT,
    input,
    result: z.object({ load: z.string() }),
    submit: async ({ order, part }, { idempotencyKey: key }) => {
      await delay(Math.random() * paceMs)
      effect(ledger, { tool: FREIGHT, call: `${order}/${part}`, key })
      // The job is done before whoever began it knows that it has begun.
      await delay(isEarly(order, dense) ? EARLY_MS : Math.random() * paceMs)
      return { externalId: jobId(order, key, dense) }
    },
  })
  return defineAgent({
    name: AGENT,
    revision: '1',
    system: 'You settle orders.',
    tools: [
      local('look'),
      local('count'),
      local('pay'),
      local('alone', { sequential: true }),
      local('refund', { needsApproval: true }),
      ship,
      freight,
    ],
    model: scriptedModel(answer, { delayMs: 1 }),
  })
}

/** `[call id, tool, part]`. A part names the call among those of its order. */
type Told = readonly (readonly [string, string, number])[]

const PATHS: readonly (readonly Told[])[] = [
  [
    [
      ['c1', 'look', 1],
      ['c2', 'pay', 1],
    ],
    [['s1', 'ship', 1]],
    [['c2', 'pay', 2]],
  ],
  [
    [
      ['c1', 'look', 1],
      ['c2', 'pay', 1],
      ['s1', 'ship', 1],
      ['s2', 'ship', 2],
    ],
    [['c2', 'pay', 2]],
  ],
  [
    [
      ['s1', 'ship', 1],
      ['r1', 'refund', 1],
    ],
    [
      ['c2', 'pay', 2],
      ['c3', 'count', 1],
    ],
  ],
  [
    [
      ['c1', 'alone', 1],
      ['c2', 'pay', 1],
      ['c3', 'look', 1],
    ],
    [['s1', 'ship', 1]],
  ],
  [
    [
      ['c1', 'look', 1],
      ['c2', 'pay', 1],
      ['c3', 'count', 1],
    ],
    [['c2', 'pay', 2]],
  ],
  [
    [
      ['c1', 'look', 1],
      ['f1', FREIGHT, 1],
    ],
    [['c2', 'pay', 2]],
  ],
]

/** The last number of an order's name says which path it takes. */
export const orderName = (thread: number, turn: string, path: number): string => `order-${thread}-${turn}-${path % PATHS.length}`
export const outputOf = (order: string): string => `settled ${order}`

function answer(prompt: Parameters<typeof turnOf>[0]): ScriptEntry {
  const { text, step } = turnOf(prompt)
  // Input that was cancelled before it was answered stands in front of the latest.
  const order = text.match(/order-\d+-s?\d+-\d/g)?.at(-1) ?? ''
  const told = PATHS[Number(order.split('-').at(-1))]?.[step]
  if (!told) return { parts: [{ text: outputOf(order) }] }
  return { parts: told.map(([id, name, part]): ScriptPart => ({ tool_call: { id, name, args: { order, part } } })) }
}
