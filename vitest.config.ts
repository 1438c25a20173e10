import { defineConfig } from 'vitest/config'

const KAFKA = 'test/**/*.kafka.test.ts'

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: [KAFKA] } },
      // Its setup runs only when one of its files is in the run.
      { extends: true, test: { name: 'kafka', include: [KAFKA], globalSetup: ['test/support/kafka/global-setup.ts'] } },
    ],
  },
})
