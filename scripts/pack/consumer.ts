// What a user's first program does, with the packed package: types checked, then run.
import { createRequire } from 'node:module'
import { defineAgent, defineTool, isThreadlogError, openThreadlog } from 'threadlog'
import { scriptedModel } from 'threadlog/ai-sdk'
import { logConformance } from 'threadlog/testing'
import { z } from 'zod'

const model = scriptedModel([
  { parts: [{ tool_call: { id: 'c-1', name: 'add', args: { a: 40, b: 2 } } }] },
  { parts: [{ text: 'It is 42.' }] },
])
const add = defineTool({
  name: 'add',
  description: 'Adds two numbers',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})
const agent = defineAgent({ name: 'sums', revision: '1', model, tools: [add] })

const threads = await openThreadlog({ agents: [agent] })
const result = await threads.run(agent, { thread: 'sums_1', input: 'What is 40 + 2?' })
await threads.close()
if (result.status !== 'completed' || result.output !== 'It is 42.') throw new Error(`unexpected: ${JSON.stringify(result)}`)
if (isThreadlogError(new Error('other')) || typeof logConformance !== 'function') throw new Error('wrong exports')

// The Kafka client is loaded with its entry, and only then.
const loadsKafka = () =>
  Object.keys(createRequire(import.meta.url).cache).some((file) => /[\\/]node_modules[\\/]@?kafkajs[\\/]/.test(file))
if (loadsKafka()) throw new Error('the main entry loads kafkajs')
const { kafkaAddress, openKafkaLog } = await import('threadlog/kafka')
if (!loadsKafka()) throw new Error('threadlog/kafka does not load kafkajs')
const failure = await openKafkaLog(kafkaAddress('kafka://127.0.0.1:1/shop')).catch((error: unknown) => error)
if (!isThreadlogError(failure, 'log_unavailable')) throw new Error('nobody answers there', { cause: failure })

// An error here would mean that the declarations resolve to `any`.
// @ts-expect-error an agent without a model is refused
export const wrong = () => defineAgent({ name: 'sums', revision: '1' })
