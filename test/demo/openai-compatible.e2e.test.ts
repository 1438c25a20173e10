import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { chatModel, modelEnv } from '../../examples/support/model.ts'
import { type ModelServer, type Script, startModelServer } from '../../examples/support/model-server.ts'
import { defineAgent, defineTool, openThreadlog, type Tool } from '../../src/index.ts'

let server: ModelServer | undefined
afterEach(() => server?.close())

/** An agent on the real provider, which talks HTTP to a server that plays the script. */
async function agentFor(script: Script, tools: Tool[] = []) {
  server = await startModelServer(script)
  const model = chatModel(modelEnv(server.url))
  return {
    agent: defineAgent({ name: 'clerk', revision: '1', model, system: 'You are a clerk.', tools }),
    requests: server.requests,
  }
}

const stock = defineTool({
  name: 'stock',
  description: 'Pieces in stock',
  input: z.object({ item: z.string() }),
  execute: ({ item }) => ({ item, pieces: item.length }),
})

describe('@ai-sdk/openai-compatible against a server', () => {
  it('answers in text, as it streams, and the usage is recorded', async () => {
    const { agent, requests } = await agentFor((conversation) => ({ text: `You asked: ${conversation.asked}` }))
    await using threads = await openThreadlog()
    const stream = threads.stream(agent, { thread: 't_1', input: 'Are the cups in stock?' })
    const texts: string[] = []
    for await (const event of stream) if (event.type === 'text') texts.push(event.text)
    const result = await stream.result

    expect(result).toMatchObject({ status: 'completed', output: 'You asked: Are the cups in stock?' })
    expect(texts.length).toBeGreaterThan(1)
    expect(texts.join('')).toBe(result.output)
    expect(requests).toHaveLength(1)
    expect(requests[0]).toMatchObject({
      model: 'scripted',
      stream: true,
      messages: [
        { role: 'system', content: 'You are a clerk.' },
        { role: 'user', content: 'Are the cups in stock?' },
      ],
    })
    const usage = await usageOf(threads, 't_1')
    expect(usage).toEqual([{ input: expect.any(Number), output: expect.any(Number) }])
    expect(usage[0]?.input).toBeGreaterThan(0)
    expect(usage[0]?.output).toBeGreaterThan(0)
  })

  it('takes parallel tool calls, and gives each result back under its id', async () => {
    const { agent, requests } = await agentFor(
      (conversation) =>
        conversation.returned('stock')
          ? { text: 'Three and four.' }
          : {
              text: 'Let me look.',
              calls: [
                { name: 'stock', args: { item: 'cup' } },
                { name: 'stock', args: { item: 'bowl' } },
              ],
            },
      [stock],
    )
    await using threads = await openThreadlog()
    const result = await threads.run(agent, { thread: 't_2', input: 'How many cups and bowls?' })

    expect(result).toMatchObject({ status: 'completed', output: 'Three and four.' })
    expect(requests).toHaveLength(2)
    expect(requests[0]?.tools?.map((tool) => tool.function.name)).toEqual(['stock'])
    const [, , asked, ...returned] = requests[1]?.messages ?? []
    const ids = asked?.tool_calls?.map((call) => call.id) ?? []
    expect(asked).toMatchObject({ role: 'assistant', content: 'Let me look.' })
    expect(new Set(ids).size).toBe(2)
    expect(
      returned.map(({ role, tool_call_id, content }) => ({ role, tool_call_id, value: JSON.parse(String(content)) })),
    ).toEqual([
      { role: 'tool', tool_call_id: ids[0], value: { item: 'cup', pieces: 3 } },
      { role: 'tool', tool_call_id: ids[1], value: { item: 'bowl', pieces: 4 } },
    ])
    expect(await usageOf(threads, 't_2')).toHaveLength(2)
  })

  it('asks again when the provider is overloaded', async () => {
    let overloaded = true
    const { agent, requests } = await agentFor(() => {
      const reply = overloaded ? { status: 503 } : { text: 'Here I am.' }
      overloaded = false
      return reply
    })
    await using threads = await openThreadlog()
    expect(await threads.run(agent, { input: 'Hello?' })).toMatchObject({ status: 'completed', output: 'Here I am.' })
    expect(requests).toHaveLength(2)
    expect(requests[1]).toEqual(requests[0])
  })

  it('fails the run on a refusal, without keeping what the provider wrote', async () => {
    const { agent } = await agentFor(() => ({ status: 400, message: 'sk-secret is not valid' }))
    await using threads = await openThreadlog()
    const result = await threads.run(agent, { thread: 't_4', input: 'Hello?' })
    expect(result).toMatchObject({ status: 'failed', failure: { retryable: false } })
    for await (const { bytes } of threads.thread('t_4').events()) expect(Buffer.from(bytes).includes('sk-secret')).toBe(false)
  })
})

// An engine that was killed while it waited for the model asks again.
describe('the scripted server', () => {
  it.each([true, false])('gives a repeated request the very same answer (streamed: %s)', async (stream) => {
    await using scripted = await startModelServer(() => ({
      text: 'One moment.',
      calls: [{ name: 'stock', args: { item: 'cup' } }],
    }))
    const body = JSON.stringify({ model: 'scripted', stream, messages: [{ role: 'user', content: 'Cups?' }] })
    const ask = async () => (await fetch(`${scripted.url}/chat/completions`, { method: 'POST', body })).text()
    const first = await ask()
    expect(first).toContain('"finish_reason":"tool_calls"')
    expect(await ask()).toBe(first)
    expect(scripted.requests).toHaveLength(2)
  })
})

async function usageOf(threads: Awaited<ReturnType<typeof openThreadlog>>, thread: string) {
  const usage: { input: unknown; output: unknown }[] = []
  for await (const { event } of threads.thread(thread).events())
    if (event?.type === 'model.responded/1') {
      const { input_tokens, output_tokens } = event.data.usage.value as Record<string, unknown>
      usage.push({ input: input_tokens, output: output_tokens })
    }
  return usage
}
