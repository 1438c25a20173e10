// A capability that two agents could share: it tells the model what customers have seen, keeps a count in the log, and shortens long histories.
//   node examples/capabilities/main.ts
import { z } from 'zod'
import {
  defineAgent,
  defineCapability,
  defineTool,
  type Message,
  openThreadlog,
  requestMessage,
  userPromptPart,
} from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'

/** The latest messages from the input of a user on, so that no call is parted from its answer; what stood before them in one sentence. */
function shortened(messages: readonly Message[]): readonly Message[] | undefined {
  const isInput = ({ kind, parts }: Message) => kind === 'request' && parts.every((part) => part.part_kind === 'user-prompt')
  const from = messages.findIndex((message, i) => i >= messages.length - 10 && isInput(message))
  if (from <= 1) return undefined
  const timestamp = new Date().toISOString()
  const summary = userPromptPart({ content: `${from} messages were here; a model could sum them up.`, timestamp })
  return [requestMessage({ parts: [summary], timestamp }), ...messages.slice(from)]
}

// README: begin
const tickets = defineCapability({
  name: 'acme.tickets',
  instructions: 'Open at most one ticket a day.',
  tools: [
    defineTool({
      name: 'open_ticket',
      description: 'Opens a ticket',
      input: z.object({ title: z.string() }),
      execute: () => ({ ticket: 7 }),
    }),
  ],
  state: { version: '1', schema: z.object({ opened: z.int() }) },
  // Before a request: may wait, and may give the history that the model reads from now on (recorded as a compaction).
  beforeModel: (messages) => (messages.length > 40 ? shortened(messages) : undefined),
  // After a call: one piece with the recording of its outcome, so the count is never off by one, whatever crashes.
  afterTool({ tool }, { settlement }, { state }) {
    if (tool === 'open_ticket' && settlement === 'returned') state.write({ opened: (state.read()?.opened ?? 0) + 1 })
  },
})
// README: end

const call = { tool_call: { id: 'c1', name: 'open_ticket', args: { title: 'Lamp broken' } } }
const model = scriptedModel([{ parts: [call] }, { parts: [{ text: 'Ticket 7 is open.' }] }])
const desk = defineAgent({ name: 'desk', revision: '1', model, capabilities: [tickets] })

await using threads = await openThreadlog()
const { output, state } = await threads.run(desk, { thread: 'customer_1', input: 'My lamp is broken.' })
console.log(output)
console.log(JSON.stringify(state?.entries['acme.tickets']))
