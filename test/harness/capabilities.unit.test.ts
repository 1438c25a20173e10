import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineAgent, defineCapability, defineTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/models/index.ts'
import { capabilityCases } from '../support/capability-cases.ts'
import { onEmbeddedLogs } from '../support/cases-on-logs.ts'
import { codeOf } from '../support/refusals.ts'

onEmbeddedLogs('capabilities', capabilityCases)

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
