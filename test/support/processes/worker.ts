import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type Agent, defineAgent, defineTool, externalTool, type ToolContext } from '../../../src/index.ts'
import { type ScriptEntry, type ScriptedModel, scriptedModel } from '../../../src/models/index.ts'
import { effect } from './ledger.ts'
import { turnOf } from './prompt.ts'

/** One response of the model: text, calls, or a request that never ends (text first, if given). */
export type Step = string | readonly Call[] | { hang: string }

export interface Call {
  id: string
  name: string
  args?: { [name: string]: string | object }
}

/** The input that makes the worker's model respond with these steps, one after the other. The conversation is the script. */
export const script = (...steps: Step[]): string => JSON.stringify(steps)

/** The file that lets the tools `gate` and `gate_again` of a process come back, once it exists. */
export const gateOf = (ledger: string, pid: number): string => `${ledger}.${pid}.open`

export interface WorkerOptions {
  ledger: string
  /** The tool `stall` never comes back, `die` kills its process, `gate` waits, and a step `hang` never ends. Otherwise all are like any other. */
  stalls?: boolean
  revision?: string
  /** Milliseconds that waits of a provider last. */
  deadlines?: Readonly<Record<string, number>>
}

/** An agent whose model does what its input says, with one tool of each kind. Effects go into the ledger. */
export function workerAgent({
  ledger,
  stalls = false,
  revision = '1',
  deadlines = {},
}: WorkerOptions): Agent & { model: ScriptedModel } {
  const input = z.object({ what: z.string().default('') })
  const done = (name: string, { callId, idempotencyKey }: ToolContext) =>
    effect(ledger, { tool: name, call: callId, key: idempotencyKey })
  const local = (name: string, more: { recovery?: 'retryable'; needsApproval?: boolean; sequential?: boolean } = {}) =>
    defineTool({
      name,
      description: `Does ${name}`,
      input,
      ...more,
      execute: ({ what }, context) => {
        done(name, context)
        return { did: name, what }
      },
    })
  const stall = (name: string, recovery?: 'retryable') =>
    defineTool({
      name,
      description: 'Does something and may never come back',
      input,
      recovery,
      execute: async (_, context) => {
        done(name, context)
        if (stalls) await new Promise(() => {})
        return { did: name }
      },
    })
  const fault = defineTool({
    name: 'fault',
    description: 'Fails',
    input,
    execute: ({ what }, context) => {
      done('fault', context)
      throw new TypeError(`secret ${what}`)
    },
  })
  const die = defineTool({
    name: 'die',
    description: 'Does something, and its process is killed before it can say so',
    input,
    execute: async (_, context) => {
      done('die', context)
      if (stalls) process.kill(process.pid, 'SIGKILL')
      return { did: 'die' }
    },
  })
  const gate = (name: string, recovery?: 'retryable') =>
    defineTool({
      name,
      description: 'Does something and comes back when the gate of its process is open',
      input,
      recovery,
      execute: async (_, context) => {
        done(name, context)
        while (stalls && !existsSync(gateOf(ledger, process.pid))) await delay(5)
        return { did: name }
      },
    })
  const careful = defineTool({
    name: 'careful',
    description: 'Needs a yes, runs alone, and may never come back',
    input,
    needsApproval: true,
    sequential: true,
    execute: async (_, context) => {
      done('careful', context)
      if (stalls) await new Promise(() => {})
      return { did: 'careful' }
    },
  })
  const ask = externalTool({
    name: 'ask',
    description: 'Asks the desk',
    provider: 'desk',
    input,
    result: z.object({ said: z.string() }),
  })
  const tools = [
    ...[
      local('note'),
      local('note_again', { recovery: 'retryable' }),
      local('confirm', { needsApproval: true }),
      local('alone', { sequential: true }),
    ],
    ...[
      stall('stall'),
      stall('stall_again', 'retryable'),
      die,
      gate('gate'),
      gate('gate_again', 'retryable'),
      careful,
      fault,
      ask,
    ],
  ]
  const model = scriptedModel((prompt) => respond(prompt, stalls))
  return { ...defineAgent({ name: 'worker', revision, system: 'You work.', questions: true, tools, model, deadlines }), model }
}

function respond(prompt: Parameters<typeof turnOf>[0], stalls: boolean): ScriptEntry {
  const { text, step } = turnOf(prompt)
  const steps = JSON.parse(text) as Step[]
  const said = steps[Math.min(step, steps.length - 1)] as Step
  if (typeof said === 'string') return { parts: [{ text: said }] }
  if ('hang' in said) return { parts: [{ text: said.hang }], ...(stalls ? { then: 'hang' as const } : {}) }
  return {
    parts: (said as Call[]).map(({ id, name, args = {} }) => ({ tool_call: { id, name, args: args as Record<string, string> } })),
  }
}
