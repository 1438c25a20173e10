import { afterEach, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/base/index.ts'

afterEach(() => void vi.useRealTimers())

test('now is epoch milliseconds and follows the system, monotonic never goes back', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
  const first = systemClock.monotonic()
  expect(systemClock.now()).toBe(1_700_000_000_000)
  vi.setSystemTime(1_600_000_000_000)
  expect(systemClock.now()).toBe(1_600_000_000_000)
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first)
})

// A sleep that went on would go on for an hour: the limit of the test finds it.
test('sleep ends early and without error when aborted', async () => {
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 5)
  await systemClock.sleep(3_600_000, controller.signal)
  await systemClock.sleep(3_600_000, AbortSignal.abort())
  await systemClock.sleep(1)
})
