import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/index.ts'

test('now is epoch milliseconds, monotonic never goes back', () => {
  expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000)
  const first = systemClock.monotonic()
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first)
})

test('sleep ends early and without error when aborted', async () => {
  const started = performance.now()
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 5)
  await systemClock.sleep(60_000, controller.signal)
  await systemClock.sleep(60_000, AbortSignal.abort())
  await systemClock.sleep(1)
  expect(performance.now() - started).toBeLessThan(5000)
})
