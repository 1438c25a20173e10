import { flushCompileCache } from 'node:module'
import { isThreadlogError, openThreadlog } from '../../../src/index.ts'
import { options, serve } from '../processes/child.ts'
import { AGENT, type StormAgentOptions, stormAgent } from './agent.ts'
import { type LogAddress, openGround } from './ground.ts'

// A caller of the API as its own process, which serves nothing. `{again: code}` is the answer to what may be asked once more.

const o = options<StormAgentOptions & { log: LogAddress }>()
const backend = await openGround(o.log)
const threads = await openThreadlog({ log: backend, application: 'storm', agents: [stormAgent(o)] })

export interface Deciding {
  id: string
  digest: string
  commandId: string
}

// A process that is killed leaves no cache behind by itself.
flushCompileCache()
serve({
  start: (run: { thread: string; input: string; commandId: string }) =>
    retryable(async () => ({ value: (await threads.start({ agent: AGENT, ...run })).runId })),
  cancel: ({ thread, commandId }: { thread: string; commandId: string }) =>
    retryable(async () => {
      await threads.thread(thread).cancel({ commandId })
      return { value: null }
    }),
  approve: ({ id, digest, commandId }: Deciding) =>
    retryable(async () => ({ value: (await threads.approve(id, { digest, by: 'lead', commandId })).verdict })),
  deny: ({ id, digest, commandId }: Deciding) =>
    retryable(async () => ({ value: (await threads.deny(id, { digest, by: 'lead', commandId })).verdict })),
  submit: ({ record, commandId }: { record: string; commandId: string }) =>
    retryable(async () => ({ value: (await threads.submit(record, { commandId })).verdict })),
  publish: ({ key, record }: { key: string; record: string }) =>
    retryable(async () => {
      const value = Buffer.from(record, 'base64')
      await threads.backend.topics.publish('results', [{ key, value }])
      return { value: null }
    }),
  close: async () => {
    await threads.close()
    await backend.close()
  },
})

async function retryable<T>(work: () => Promise<T>): Promise<T | { again: string }> {
  try {
    return await work()
  } catch (error) {
    if (isThreadlogError(error) && error.disposition === 'retry') return { again: error.code }
    throw error
  }
}
