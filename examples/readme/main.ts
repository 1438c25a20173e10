// The example of the README. Beside it, in the same directory: python3 payouts.py shop.db
//   OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL   any OpenAI-compatible provider; without them a scripted one on this host
import '../support/offline-model.ts'
// README: begin
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { z } from 'zod'
import { defineAgent, defineTool, externalTool, openThreadlog } from '../../src/index.ts'

const { OPENAI_BASE_URL: baseURL = '', OPENAI_API_KEY: apiKey, OPENAI_MODEL: model = '' } = process.env
const provider = createOpenAICompatible({ name: 'openai', baseURL, apiKey, includeUsage: true })

// Your database: one booking for each idempotency key, however often it is asked.
const ledger = new Map<string, { order: string; cents: number; iban: string }>()

const refund = defineTool({
  name: 'refund',
  description: 'Book a refund; returns the IBAN to pay it out to',
  input: z.object({ order: z.string(), cents: z.int().positive() }),
  needsApproval: true,
  execute({ order, cents }, { idempotencyKey }) {
    if (!ledger.has(idempotencyKey)) ledger.set(idempotencyKey, { order, cents, iban: 'DE89370400440532013000' })
    return ledger.get(idempotencyKey)
  },
})
const payout = externalTool({
  name: 'payout',
  description: 'Pay out by bank transfer',
  provider: 'payouts',
  input: z.object({ iban: z.string(), cents: z.int().positive() }),
  result: z.object({ reference: z.string() }),
})
const system = 'You settle refunds: book the refund, then pay it out, then tell the customer the payment reference.'
const support = defineAgent({ name: 'support', revision: '1', model: provider(model), system, tools: [refund, payout] })

await using threads = await openThreadlog({ log: 'sqlite:./shop.db', application: 'shop', agents: [support] })
await threads.serve() // may be killed at any moment

const customer = { user: 'u-17', thread: 'order_991' }
const run = await threads.start({ agent: 'support', ...customer, input: 'Refund order 991: 42 EUR', commandId: 'refund-991' })
const shiftLead = async () => {
  for await (const wait of threads.waits({ ...customer, kind: 'approval', follow: true }))
    await threads.approve(wait.id, { digest: wait.digest, by: 'shift-lead' })
}
shiftLead()
console.log(await run.result()) // completed, once the payout process has answered
// README: end
