import { expect, test } from 'vitest'
import { jsonDigest } from '../../src/base/index.ts'
import { QUESTION_TOOL } from '../../src/harness/index.ts'
import { agentOf } from '../support/agents.ts'

// It is part of what a question's digest covers: with another form, answers to questions that are open would be refused.
test('the form of a question is the one it always was', () => {
  const tool = agentOf([], [], { questions: true }).tools.get(QUESTION_TOOL)
  expect(jsonDigest(tool?.inputSchema ?? null)).toBe('2dd5ee487ad5fec97890203ec83c7d94915d1a6d78fb73aa2bf6aee10e6b020b')
})
