import { z } from 'zod'
import { type Agent, defineAgent, externalTool } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/models/index.ts'
import { effect } from './ledger.ts'
import { turnOf } from './prompt.ts'

/** An agent that has one job done elsewhere, named by its input. The job system knows a submission by its key; each stands in the ledger. */
export function submittingAgent(ledger: string, submitted: () => Promise<void>): Agent {
  const job = externalTool({
    name: 'job',
    description: 'Runs a job elsewhere',
    provider: 'jobs',
    input: z.object({ job: z.string() }),
    result: z.object({ ok: z.boolean() }),
    submit: async ({ job }, { idempotencyKey, callId }) => {
      effect(ledger, { tool: job, call: callId, key: idempotencyKey })
      await submitted()
      return { externalId: jobOf(idempotencyKey) }
    },
  })
  const model = scriptedModel((prompt) => {
    const { text, step } = turnOf(prompt)
    return { parts: [step === 0 ? { tool_call: { id: 'c1', name: 'job', args: { job: text } } } : { text: `did ${text}` }] }
  })
  return defineAgent({ name: 'submitting', revision: '1', tools: [job], model })
}

export const jobOf = (key: string): string => `job-${key.slice(0, 12)}`
