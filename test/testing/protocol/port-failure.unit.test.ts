import { expect, test } from 'vitest'
import { type EventLog, type LogBackend, openMemoryLog } from '../../../src/log/index.ts'
import { PortFailure, type PortLog, type PortSchedule, replayPortModel, runPortModel } from '../../../src/testing/index.ts'

/** A log that calls every commit accepted. */
const agreeing = ({ events }: LogBackend): EventLog =>
  new Proxy(events, {
    get(_, name: keyof EventLog) {
      if (name === 'append') return async (commit: never) => ({ ...(await events.append(commit)), accepted: true })
      const value = events[name]
      return typeof value === 'function' ? value.bind(events) : value
    },
  })
const open = async (): Promise<EventLog> => agreeing(await openMemoryLog())

async function failureOf(run: () => Promise<unknown>): Promise<PortFailure | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    if (error instanceof PortFailure) return error
    throw error
  }
}
const failing = (schedule: PortSchedule) => failureOf(() => replayPortModel({ open }, schedule))

test('a failure on a real log comes as a schedule from which nothing can be left out, and as a test', async () => {
  const found = (await failureOf(() => runPortModel({ open, seed: 3, steps: 200 }))) as PortFailure
  const { schedule, code, seed, message, regressionTest } = found
  expect({ code, seed }).toEqual({ code: 'answer-contradicted', seed: 3 })
  expect(message).toContain(`Seed 3, 200 steps made ${schedule.steps.length}.`)
  expect(message).toContain(regressionTest)
  expect(schedule.steps.length).toBeLessThanOrEqual(4)
  // The fault is in the log, so none on the way to it is needed.
  expect(Object.values(schedule.faults)).toEqual([0, 0, 0, 0, 0])

  expect((await failing(schedule))?.code).toBe(code)
  for (const [i] of schedule.steps.entries())
    expect((await failing({ ...schedule, steps: schedule.steps.toSpliced(i, 1) }))?.code).not.toBe(code)

  const pasted = (on: PortLog['open']) =>
    new Promise<unknown>((resolve) => {
      const test = (_name: string, body: () => Promise<unknown>) => resolve(failureOf(body))
      new Function('test', 'replayPortModel', 'open', regressionTest)(test, replayPortModel, on)
    })
  expect(await pasted(open)).toMatchObject({ code })
  expect(await pasted(async () => (await openMemoryLog()).events)).toBeUndefined()
})

test('a failure that does not come again is told as it was found', async () => {
  let runs = 0
  const once = async () => (++runs === 1 ? open() : (await openMemoryLog()).events)
  const found = await failureOf(() => runPortModel({ open: once, seed: 3, steps: 40 }))
  expect(found?.message).toContain('it did not fail again when replayed')
  expect(found?.schedule.steps.length).toBeGreaterThanOrEqual(40)
})
