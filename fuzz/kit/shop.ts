import { z } from 'zod'
import { defineAgent, defineTool, externalTool, openThreadlog, type Threadlog, type Wait } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { MARKER } from './marker.ts'

const input = z.object({ n: z.int(), note: z.string() })
const text = { description: 'a tool', input }

/** The value of a payout is checked, that of an errand is not, a refund is approved by a person. */
export const tools = [
  externalTool({ ...text, name: 'payout', provider: 'payouts', result: z.object({ reference: z.string() }) }),
  externalTool({ ...text, name: 'errand', provider: 'errands' }),
  defineTool({ ...text, name: 'refund', needsApproval: true, execute: ({ n }) => ({ n }) }),
]
/** Moves the cursor, sets the title, turns the reading direction. */
const HOSTILE = `${MARKER} \u001b[2J\u001b]0;t\u0007\u202e\u200b\u009b31m`

const KINDS = ['payout', 'errand', 'refund'] as const

/** Calls of one thread. The last one is told to nobody, so no batch is ever complete. */
const CALLS = 31

const model = scriptedModel((prompt) => {
  const last = prompt.findLastIndex((message) => message.role === 'user')
  const asked = JSON.stringify(prompt[last])
  if (prompt.slice(last).some((message) => message.role === 'tool')) return { parts: [{ text: 'done' }] }
  if (!asked.includes('Work')) return { parts: [{ text: `No work, ${HOSTILE}` }] }
  const parts = Array.from({ length: CALLS }, (_, n) => ({
    tool_call: { id: `c${n}`, name: KINDS[n % 3] as string, args: { n, note: n === 2 ? HOSTILE : MARKER } },
  }))
  return { parts }
})

/** An agent with many open calls. Everything it says or asks for holds the marker. */
export const worker = defineAgent({ name: 'worker', revision: '1', model, tools })

export const APPLICATION = 'shop'

/** What a case may name of a wait. */
export interface ShopWait {
  readonly id: string
  readonly tool: string
  readonly provider: string
  readonly schema: string
  readonly digest: string
}

/** An open log with one waiting thread; its waits take turns: payout, errand, refund. */
export async function openShop(
  log: `sqlite:${string}` | 'memory' = 'memory',
): Promise<{ threads: Threadlog; waits: ShopWait[] }> {
  const threads = await openThreadlog({ log, application: APPLICATION, agents: [worker] })
  const { waits } = await threads.run(worker, { thread: 'thread_work', input: `Work ${MARKER}` })
  return { threads, waits: inTurns(waits) }
}

function inTurns(waits: readonly Wait[]): ShopWait[] {
  const of = (tool: string) => waits.filter((wait) => wait.tool.endsWith(tool))
  const lists = KINDS.map(of)
  return Array.from({ length: CALLS - 1 }, (_, n) => lists[n % 3]?.[Math.floor(n / 3)] as Wait).map((wait) => ({
    id: wait.id,
    tool: KINDS.find((kind) => wait.tool.endsWith(kind)) ?? '',
    provider: wait.provider,
    schema: wait.schemaId,
    digest: wait.digest,
  }))
}

const PLACE = /@(\d+)\.(id|schema|digest|provider)@/g

/** Cases name waits as `@3.id@`, since ids differ from run to run. */
export const placed = (text: string, waits: readonly ShopWait[]): string =>
  text.replace(PLACE, (_, n: string, part: string) => {
    const wait = waits[Number(n) % waits.length] as ShopWait
    return part === 'id' ? wait.id : part === 'schema' ? wait.schema : part === 'digest' ? wait.digest : wait.provider
  })

/** Number of events a log holds. */
export const eventCount = (threads: Threadlog): number =>
  threads.backend.tables.get<{ n: number }>('SELECT count(*) AS n FROM events')?.n ?? 0
