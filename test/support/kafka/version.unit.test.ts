import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { IMAGE } from './container.ts'

test('docker-compose.yml starts the Kafka that tests run on', () => {
  const compose = readFileSync(new URL('../../../docker-compose.yml', import.meta.url), 'utf8')
  expect(/image: (apache\/kafka:.+)/.exec(compose)?.[1]).toBe(IMAGE)
})
