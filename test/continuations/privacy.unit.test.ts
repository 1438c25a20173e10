import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import {
  type AuditRecord,
  ContinuationFailure,
  ContinuationProvider,
  ContinuationRecord,
  externalTool,
  openThreadlog,
  PrincipalGrantSnapshot,
  ResumeArtifact,
} from '../../src/index.ts'
import { agentOf, calls, says } from '../support/agents.ts'

// Continuation spec §4: markers stand in everything private, and are looked for in everything that is not.

const EXTERNAL = 'marker-external-id'
const RESULT = 'marker-result'
const PERMISSION = 'marker:permission'
const CODE = 'marker-code'
const WORDS = 'marker-words-of-the-validator'
const CHECKPOINT = 'marker-checkpoint'
const SCOPE = { applicationId: 'marker-app', userId: 'marker-user', sessionId: 'marker-session', runId: 'marker-run' }
const RUN = { userId: SCOPE.userId, sessionId: SCOPE.sessionId, runId: SCOPE.runId }
const SCHEMA = 'marker-schema/v1'

const failure = new ContinuationFailure({ code: CODE })
const grants = new PrincipalGrantSnapshot({ permissions: [PERMISSION] })
const resume = new ResumeArtifact({
  framework: 'adk',
  nativeInvocationId: 'marker-native',
  toolCallId: 'marker-call',
  toolName: 'marker-tool',
})

/** Everything an error can be shown as, its causes included. */
function shown(error: unknown): string {
  const { message, stack, cause } = error as Error
  return [message, stack, inspect(error, { depth: 20, showHidden: true }), JSON.stringify(error), cause ? shown(cause) : ''].join(
    '\n',
  )
}

async function refusal(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
  } catch (error) {
    // The stack of the test itself is no part of the library.
    return shown(error).replaceAll(import.meta.filename, '')
  }
  throw new Error('not refused')
}

let printed: string[] = []
beforeEach(() => {
  printed = []
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, 'write').mockImplementation((chunk) => printed.push(String(chunk)) > 0)
  for (const level of ['log', 'info', 'warn', 'error', 'debug'] as const)
    vi.spyOn(console, level).mockImplementation((...said) => void printed.push(inspect(said, { depth: 20 })))
})
afterEach(() => vi.restoreAllMocks())

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})
const sqlite = (): `sqlite:${string}` => {
  folders.push(mkdtempSync(join(tmpdir(), 'threadlog-')))
  return `sqlite:${join(folders[0] as string, 'log.db')}`
}

async function life(log: 'memory' | `sqlite:${string}`) {
  const threads = await openThreadlog({ log, application: SCOPE.applicationId })
  const audit: AuditRecord[] = []
  const store = threads.continuationStore({ audit: (line) => audit.push(line) })
  const bank = new ContinuationProvider({ store, applicationId: SCOPE.applicationId, provider: 'bank' })
  const errors: string[] = []
  const views: string[] = []
  const look = (...values: unknown[]) => views.push(...values.map((value) => inspect(value, { depth: 20, showHidden: true })))
  const refused = async (work: () => Promise<unknown>) => void errors.push(await refusal(work))

  const at = { ...RUN, externalId: EXTERNAL, schemaId: SCHEMA }
  const suspend = { ...at, capability: 'pay', resume, principalGrants: grants }
  const complete = (result: unknown, validate: (value: unknown) => unknown = (value) => value) =>
    bank.complete({ ...at, result, validate })

  await refused(() => bank.suspend(suspend))
  await store.beginRun({ scope: SCOPE, framework: 'adk' })
  const record = await bank.suspend(suspend)
  await store.putCheckpoint({ scope: SCOPE, checkpointId: 'c', payload: { text: CHECKPOINT } })
  look(
    record,
    await store.getRun(SCOPE),
    await bank.lookup({ externalId: EXTERNAL }),
    await bank.listPending(),
    grants,
    bank,
    store,
  )
  const { continuationId } = record

  await refused(() => bank.suspend(suspend))
  await refused(() => bank.suspend({ ...suspend, externalId: `${EXTERNAL}${'x'.repeat(1024)}` }))
  await refused(() => bank.suspend({ ...suspend, capability: `${CODE} ` }))
  await refused(() => bank.lookup({ externalId: `${EXTERNAL}\ud800` }))
  await refused(async () => new ContinuationFailure({ code: `${CODE} ` }))
  await refused(async () => new PrincipalGrantSnapshot({ permissions: [`${PERMISSION} `] }))
  await refused(async () => new ContinuationRecord({ ...record, result: RESULT }))
  await refused(() =>
    complete(RESULT, () => {
      throw new Error(`${WORDS} ${RESULT}`)
    }),
  )
  await refused(() => complete(RESULT, async () => Promise.reject(new Error(WORDS))))
  await refused(() => complete([RESULT, new Set([RESULT])]))
  await refused(() => complete({ a: [RESULT, Number.NaN] }))
  await refused(() => bank.complete({ ...at, result: RESULT, validate: RESULT as unknown as () => unknown }))
  await refused(() => bank.fail({ ...at, failure: { code: CODE } as ContinuationFailure }))
  await refused(() => bank.fail({ ...at, schemaId: 'marker-other/v1', failure }))
  await refused(() => bank.complete({ ...at, userId: 'marker-stranger', result: RESULT, validate: (value) => value }))
  await refused(() => bank.claim({ ...RUN, continuationId, expectedRevision: 7 }))
  await refused(() => bank.cancel({ record, failure: CODE as unknown as ContinuationFailure }))
  await refused(() => store.transitionRun({ scope: SCOPE, expectedStatus: 'running', status: 'completed' }))
  await refused(() => store.putCheckpoint({ scope: SCOPE, checkpointId: 'c', payload: { text: CHECKPOINT } }))
  await refused(() => store.beginRun({ scope: { ...SCOPE, runId: 'marker-second' }, framework: 'adk' }))

  const completed = await complete({ text: RESULT })
  look(completed)
  await refused(() => complete({ text: RESULT }))
  await refused(() => bank.fail({ ...at, failure }))
  await refused(() => bank.cancel({ record, failure }))
  await refused(() => bank.arm(record))
  const armed = await bank.arm(completed)
  const claimed = await bank.claim({ ...RUN, continuationId, expectedRevision: armed.revision })
  look(armed, claimed, await bank.lookup({ externalId: EXTERNAL }))
  await refused(() => complete({ text: RESULT }))
  await refused(() => bank.arm(claimed))

  const other = await bank.suspend({ ...suspend, externalId: `${EXTERNAL}-2` })
  const failed = await bank.cancel({ record: other, failure })
  look(failed, await bank.listPending())

  const { topics, tables } = threads.backend
  const edges: unknown[] = []
  for (const topic of ['requests', 'receipts', 'checkpoints', 'results'] as const)
    for await (const page of topics.scan(topic)) edges.push(...page)
  const keys = tables.all<{ key: string }>('SELECT lower(hex(key)) AS key FROM streams').map(({ key }) => key)
  await threads.close()
  return { errors, views, audit, edges, keys, continuationId }
}

describe.each(['memory', 'sqlite'] as const)('what a provider and a host tell the store stays there: %s', (kind) => {
  it('errors, audit, text forms, keys, topics and printed lines hold none of it', async () => {
    const { errors, views, audit, edges, keys, continuationId } = await life(kind === 'sqlite' ? sqlite() : 'memory')
    expect(errors.length).toBeGreaterThan(25)
    for (const error of errors) expect(error).not.toContain('marker')
    expect(audit.map(({ attributes }) => attributes.outcome)).toContain('failed')
    for (const line of audit.map((record) => inspect(record, { depth: 20 }))) {
      expect(line).not.toContain('marker')
      expect(line).not.toContain(continuationId)
    }
    for (const view of views)
      for (const secret of [EXTERNAL, RESULT, PERMISSION, CODE, CHECKPOINT]) expect(view).not.toContain(secret)
    // A foreign host submits its own jobs: nothing of its waits is published.
    expect(edges).toEqual([])
    expect(keys.length).toBeGreaterThan(2)
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/)
    expect(printed.join('')).not.toContain('marker')
  })
})

describe('what a provider tells a wait of a threadlog agent', () => {
  it('stands in no error, and in values of topics only, never in keys or headers', async () => {
    const pay = externalTool({
      ...{ name: 'pay', description: 'Pays', provider: 'bank' },
      input: z.object({ cents: z.int() }),
      result: z.object({ reference: z.string().max(20) }),
    })
    const agent = agentOf([calls(['c1', 'pay', { cents: 5 }]), says('Paid.')], [pay])
    const threads = await openThreadlog({ agents: [agent] })
    const { invocationId, thread } = await threads.run(agent, { input: 'Pay.' })
    const bank = threads.continuations('bank')
    const [pair] = await bank.listPending()
    const own = { userId: thread.user, sessionId: thread.thread, runId: invocationId }
    const at = { ...own, externalId: pair?.externalId ?? '', schemaId: pair?.record.schemaId ?? '' }
    const complete = (reference: unknown) => bank.complete({ ...at, result: { reference }, validate: (value) => value })
    const errors = [
      await refusal(() => complete([RESULT])),
      await refusal(() => complete(RESULT.repeat(3))),
      await refusal(() => bank.complete({ ...at, externalId: EXTERNAL, result: RESULT, validate: (value) => value })),
    ]
    await threads.submit({ provider: 'bank', external_id: EXTERNAL, result: RESULT })
    await complete(RESULT)
    errors.push(await refusal(() => complete('another')))
    const answers = [await threads.submit({ provider: 'bank', external_id: at.externalId, result: { reference: RESULT } })]
    const keysAndHeaders: unknown[] = []
    for (const topic of ['requests', 'receipts', 'checkpoints'] as const)
      for await (const page of threads.backend.topics.scan(topic))
        keysAndHeaders.push(...page.map(({ key, headers }) => ({ key, headers })))
    await threads.close()
    for (const error of errors) for (const secret of ['marker', at.externalId]) expect(error).not.toContain(secret)
    expect(answers.map(({ verdict }) => verdict)).toEqual(['duplicate'])
    expect(JSON.stringify(answers)).not.toContain(RESULT)
    expect(keysAndHeaders.length).toBeGreaterThan(2)
    expect(JSON.stringify(keysAndHeaders)).not.toContain('marker')
    expect(printed.join('')).not.toContain('marker')
  })
})
