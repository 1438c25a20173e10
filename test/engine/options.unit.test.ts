import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineAgent, defineCapability, defineTool, externalTool, openThreadlog, type Threadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { says } from '../support/agents.ts'

// What is called with something else than options, by hand or from JavaScript: told as such, never as an accident inside.

const agent = defineAgent({ name: 'agent', revision: '1', model: scriptedModel([says('done')]) })
let threads: Threadlog
beforeAll(async () => {
  threads = await openThreadlog({ agents: [agent] })
  await threads.run(agent, { thread: 't_1', input: 'go' })
})
afterAll(() => threads.close())

const calls: Record<string, (o: never) => unknown> = {
  openThreadlog: (o) => openThreadlog(o),
  defineAgent: (o) => defineAgent(o),
  defineCapability: (o) => defineCapability(o),
  defineTool: (o) => defineTool(o),
  externalTool: (o) => externalTool(o),
  run: (o) => threads.run(agent, o),
  stream: (o) => threads.stream(agent, o),
  start: (o) => threads.start(o),
  serve: (o) => threads.serve(o),
  waits: (o) => threads.waits(o),
  waitCounts: (o) => threads.waitCounts(o),
  submit: (o) => threads.submit({}, o),
  approve: (o) => threads.approve('w', o),
  deny: (o) => threads.deny('w', o),
  answer: (o) => threads.answer('w', { answers: {} } as never, o),
  continuations: (o) => threads.continuations('p', o),
  continuationStore: (o) => threads.continuationStore(o),
  thread: (o) => threads.thread(o),
  state: (o) => threads.thread('t_1').state(o),
  events: (o) => Array.fromAsync(threads.thread('t_1').events(o)),
  cancel: (o) => threads.thread('t_1').cancel(o),
  steer: (o) => threads.thread('t_1').steer('x', o),
  fork: (o) => threads.thread('t_1').fork(o),
  reconcile: (o) => threads.thread('t_1').reconcile('c', { result: 1 }, o),
}

test.each(Object.entries(calls))('%s: null or a number is refused as no options', async (name, call) => {
  for (const wrong of [null, 7]) {
    const error = await (async () => call(wrong as never))().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error, `${name}(${wrong})`).toMatchObject({ code: 'option_invalid', expected: expect.any(String) })
  }
})
