import { z } from 'zod'
import type { Tool } from '../../src/harness/index.ts'
import { type Agent, defineAgent, defineTool, externalTool, type RecordedEvent, type Threadlog } from '../../src/index.ts'
import type { Message, ToolReturnPart } from '../../src/messages/index.ts'
import { type Script, scriptedModel } from '../../src/models/index.ts'

/** A response that makes calls. */
export const calls = (...made: [id: string, name: string, args: Record<string, unknown>][]) => ({
  parts: made.map(([id, name, args]) => ({ tool_call: { id, name, args: args as never } })),
})

/** A response of text. */
export const says = (text: string) => ({ parts: [{ text }] })

/** The tools most tests need, and a record of what their bodies were given. */
export function toolbox() {
  const ran: { tool: string; key: string; args: unknown; approved: boolean }[] = []
  const note = (tool: string) => (args: unknown, context: { idempotencyKey: string; approved: boolean }) => {
    ran.push({ tool, key: context.idempotencyKey, args, approved: context.approved })
    return { did: tool }
  }
  const input = z.object({ n: z.int() })
  const text = { description: 'a tool', input }
  return {
    ran,
    tools: {
      plain: defineTool({ ...text, name: 'plain', execute: note('plain') }),
      safe: defineTool({ ...text, name: 'safe', recovery: 'retryable', execute: note('safe') }),
      guarded: defineTool({ ...text, name: 'guarded', needsApproval: true, execute: note('guarded') }),
      far: externalTool({ ...text, name: 'far', provider: 'outside', result: z.object({ ok: z.boolean() }) }),
    },
  }
}

export function agentOf(
  script: Script,
  tools: readonly Tool[],
  more: { system?: string; questions?: boolean; revision?: string } = {},
): Agent {
  return defineAgent({ name: 'agent', revision: more.revision ?? '1', model: scriptedModel(script), tools, ...more })
}

/** All events of a thread, in order. */
export async function eventsOf(threads: Threadlog, thread: string): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = []
  for await (const event of threads.thread(thread).events()) events.push(event)
  return events
}

export const typesOf = async (threads: Threadlog, thread: string): Promise<string[]> =>
  (await eventsOf(threads, thread)).map((record) => record.event?.type.replace(/\/\d+$/, '') ?? '?')

/** Tool returns of a history, in order: `[call id, outcome]`. */
export const returnsOf = (messages: readonly Message[]): [string, string][] =>
  messages.flatMap((message) =>
    message.kind === 'request'
      ? message.parts
          .filter((part): part is ToolReturnPart => part.part_kind === 'tool-return')
          .map((part): [string, string] => [part.tool_call_id, part.outcome])
      : [],
  )
