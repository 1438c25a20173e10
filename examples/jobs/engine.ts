// Serves an agent whose videos are rendered by the job service, and watches its jobs. May be killed at any moment.
//   node engine.ts <log> <url of the job service> [milliseconds between two looks for waits]
import { z } from 'zod'
import { defineAgent, externalTool, openThreadlog } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { JobsClient } from './client.ts'
import { monitorJobs } from './monitor.ts'

const [log = '', url = '', everyMs = '5000'] = process.argv.slice(2)
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const jobs = new JobsClient(url)

const render = externalTool({
  name: 'render',
  description: 'Render a video',
  provider: 'jobs',
  input: z.object({ kind: z.string(), seconds: z.int().positive() }),
  result: z.object({ frames: z.int() }),
  // After a crash it is called again with the same key, and the service answers with the same job.
  submit: async ({ kind, seconds }, { idempotencyKey, signal }) => ({
    externalId: (await jobs.begin(kind, { seconds }, { idempotencyKey, signal })).id,
  }),
})
const director = defineAgent({
  name: 'director',
  revision: '1',
  model: scriptedModel((prompt) => {
    const last = prompt.at(-1)
    if (last?.role !== 'tool') {
      const [kind = '', seconds = '1'] = String(
        last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : '',
      ).split(' ')
      return { parts: [{ tool_call: { id: 'c1', name: 'render', args: { kind, seconds: Number(seconds) } } }] }
    }
    return { parts: [{ text: JSON.stringify(last.content[0]?.type === 'tool-result' ? last.content[0].output : null) }] }
  }),
  tools: [render],
})

const threads = await openThreadlog({ log: log as `sqlite:${string}`, application: 'studio', agents: [director] })
await threads.serve({ onProblem: (problem) => say({ event: 'problem', ...problem }) })
const stop = new AbortController()
process.stdin.resume().on('end', () => process.exit())
say({ event: 'serving' })
await monitorJobs({ provider: threads.continuations('jobs'), jobs, signal: stop.signal, everyMs: Number(everyMs), say })
