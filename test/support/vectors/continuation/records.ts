import type { LogContinuationStore } from '../../../../src/continuations/index.ts'
import { ContinuationProvider, type ContinuationRecord } from '../../../../src/continuations/index.ts'
import type { Fixture } from './helpers.ts'
import { type OpenStore, Sequence } from './sequence.ts'

// Kinds about one wait's life: what is audited, copied, timed, generated.

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON of many shapes
type Any = any

const RUN = { userId: 'user-1', sessionId: 'session-1', runId: 'run-1' }
const WAIT = { externalId: 'job-1', capability: 'workflow.run', schemaId: 'report-result/v1' }
const provider = (store: LogContinuationStore) =>
  new ContinuationProvider({ store, applicationId: 'reports', provider: 'hatchet' })

async function withStore<T>(open: OpenStore, work: (store: Awaited<ReturnType<OpenStore>>['store']) => Promise<T>): Promise<T> {
  const { store, close } = await open()
  try {
    return await work(store)
  } finally {
    await close()
  }
}

/** The exact records per operation, and what of the sensitive texts and generated ids occurs in them. */
export const audit = (v: Any, fixture: Fixture, open: OpenStore) =>
  withStore(open, async (store) => {
    const run = new Sequence(store, fixture)
    const records: unknown[] = []
    for (const op of v.ops) {
      const from = store.lines.length
      await run.step(op)
      records.push(
        store.lines.slice(from).map((line) => ({ ...line, logger: line.logger.replace('threadlog', 'harnest.agent') })),
      )
    }
    const text = JSON.stringify(records)
    return {
      records: JSON.parse(text.replaceAll('"info"', '"INFO"')),
      leaks: [...v.sensitive, ...run.generated].filter((word) => text.includes(word)),
    }
  })

export const isolation = (_v: Any, _fixture: Fixture, open: OpenStore) =>
  withStore(open, async (store) => {
    const own = provider(store)
    await store.beginRun({ scope: { applicationId: 'reports', ...RUN }, framework: 'langgraph' })
    const { continuationId } = await own.suspend({ ...RUN, ...WAIT })
    const result = { list: [1] }
    const { externalId, schemaId } = WAIT
    await own.complete({ ...RUN, externalId, schemaId, result, validate: (value) => value })
    result.list.push(2)
    const list = async (): Promise<number[]> => {
      const record = await own.get({ ...RUN, continuationId })
      return (record?.result as { list: number[] } | undefined)?.list ?? []
    }
    const after_caller_changes_input = [...(await list())]
    try {
      ;(await list()).push(3)
    } catch {
      // Frozen.
    }
    return { after_caller_changes_input, after_caller_changes_returned: await list() }
  })

const FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00$/

export const times = (_v: Any, _fixture: Fixture, open: OpenStore) =>
  withStore(open, async (store) => {
    const own = provider(store)
    const scope = { applicationId: 'reports', ...RUN }
    const begun = await store.beginRun({ scope, framework: 'langgraph' })
    const { externalId, schemaId } = WAIT
    const records: ContinuationRecord[] = [await own.suspend({ ...RUN, ...WAIT })]
    records.push(await own.arm(records[0] as ContinuationRecord))
    records.push(await own.complete({ ...RUN, externalId, schemaId, result: 1, validate: (value) => value }))
    const { continuationId, revision } = records[2] as ContinuationRecord
    records.push(await own.claim({ ...RUN, continuationId, expectedRevision: revision }))
    const run = await store.getRun(scope)
    const updated = records.map((record) => record.updatedAt)
    return {
      form_ok: records.every((record) => FORM.test(record.createdAt) && FORM.test(record.updatedAt)),
      created_kept: new Set(records.map((record) => record.createdAt)).size === 1,
      updated_changes_with_every_mutation: new Set(updated).size === updated.length,
      updated_never_before_created: records.every((record) => Date.parse(record.updatedAt) >= Date.parse(record.createdAt)),
      run_created_kept: run?.createdAt === begun.createdAt,
      run_updated_changes: run?.updatedAt !== begun.updatedAt,
    }
  })

export const generatedIds = (v: Any, _fixture: Fixture, open: OpenStore) =>
  withStore(open, async (store) => {
    const own = provider(store)
    const ids: string[] = []
    for (let i = 0; i < v.times; i++) {
      const run = { userId: 'user-1', sessionId: `session-${i}`, runId: `run-${i}` }
      await store.beginRun({ scope: { applicationId: 'reports', ...run }, framework: 'adk' })
      ids.push((await own.suspend({ ...run, ...WAIT, externalId: `job-${i}` })).continuationId)
    }
    const { pattern } = v.expect
    return {
      pattern: ids.every((id) => new RegExp(pattern).test(id)) ? pattern : ids,
      distinct: new Set(ids).size === ids.length,
    }
  })
