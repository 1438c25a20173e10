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
      // Its setup runs only when one of its files is in the run. On a loaded machine a broker may be late: CI asks once more, and says so.
      {
        extends: true,
        test: {
          name: 'kafka',
          include: [KAFKA],
          globalSetup: ['test/support/kafka/global-setup.ts'],
          retry: process.env['CI'] === 'true' ? 1 : 0,
        },
      },
    ],
  },
})
