import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineCapability, defineTool } from '../../src/index.ts'
import { type LogBackend, openLog } from '../../src/log/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { capabilityCases } from '../support/capability-cases.ts'
import { codeOf } from '../support/refusals.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanup.splice(0).reverse()) await step()
})

const logs: Record<string, () => Promise<LogBackend>> = {
  memory: () => openLog('memory'),
  sqlite: () => {
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
    cleanup.push(() => rmSync(folder, { recursive: true, force: true }))
    return openLog(`sqlite:${join(folder, 'log.db')}`)
  },
}

describe.each(Object.entries(logs))('capabilities, on %s', (_, open) => {
  test.each(Object.entries(capabilityCases))('%s', async (_name, body) => {
    const log = await open()
    cleanup.push(() => log.close())
    await body(log)
  })
})

test('what is no capability, or is there twice, is refused before any run', () => {
  const refused = (o: unknown) => codeOf(() => defineCapability(o as never))
  const schema = z.object({})
  for (const o of [{}, { name: ' ' }, { name: 'threadlog.usage' }, { name: 'a', beforeModel: 'f' }])
    expect(refused(o)).toBe('capability_invalid')
  for (const state of [null, { version: '', schema }, { version: '1' }, { version: '1', schema: {} }])
    expect(refused({ name: 'a', state })).toBe('capability_invalid')
  const model = scriptedModel([])
  const a = defineCapability({ name: 'a' })
  const tool = defineTool({ name: 't', description: 't', input: z.object({}), execute: () => 1 })
  const b = defineCapability({ name: 'b', tools: [tool] })
  const agent = (o: object) => codeOf(() => defineAgent({ name: 'x', revision: '1', model, ...o }))
  expect(agent({ capabilities: [a, a] })).toBe('capability_duplicate')
  expect(agent({ capabilities: [b], tools: [tool] })).toBe('tool_duplicate')
  expect(agent({ capabilities: [defineCapability({ name: 'c', instructions: 'x'.repeat(65_536) })] })).toBe('agent_invalid')
})
