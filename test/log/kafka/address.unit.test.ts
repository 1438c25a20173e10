import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { kafkaAddress } from '../../../src/log/kafka/index.ts'

const codeOf = (address: string, env = {}): unknown => {
  try {
    return kafkaAddress(address, env)
  } catch (error) {
    expect(JSON.stringify(error)).not.toContain('hunter2')
    return (error as { code?: string }).code
  }
}

test('an address is brokers, prefix and options', () => {
  expect(kafkaAddress('kafka://a:9092,[::1]:9093/shop', {})).toEqual({ brokers: ['a:9092', '[::1]:9093'], prefix: 'shop' })
  expect(kafkaAddress('kafka://a:1/shop?replica=x%20y.db&tls=true', {})).toMatchObject({ replica: 'x y.db', ssl: true })
  const env = { THREADLOG_KAFKA_USERNAME: 'me', THREADLOG_KAFKA_PASSWORD: 'hunter2' }
  const sasl = { mechanism: 'scram-sha-256', username: 'me', password: 'hunter2' }
  expect(kafkaAddress('kafka://a:1/shop?sasl=SCRAM-SHA-256', env)).toMatchObject({ sasl })
  const file = join(tmpdir(), `threadlog-password-${process.pid}`)
  writeFileSync(file, 'hunter2\n')
  const byFile = { THREADLOG_KAFKA_USERNAME: 'me', THREADLOG_KAFKA_PASSWORD_FILE: file }
  expect(kafkaAddress('kafka://a:1/shop?sasl=plain', byFile)).toMatchObject({ sasl: { ...sasl, mechanism: 'plain' } })
})

test.each([
  'kafka://a:9092',
  'kafka://a:9092/',
  'kafka://a/shop',
  'kafka://a:0/shop',
  'kafka://a:9092,/shop',
  'kafka://me:hunter2@a:9092/shop',
  'kafka://a:9092/sh op',
  'kafka://a:9092/shop/x',
  `kafka://a:9092/${'x'.repeat(240)}`,
  'kafka://a:9092/shop?password=hunter2',
  'kafka://a:9092/shop?replica=',
  'kafka://a:9092/shop?tls=yes',
  'kafka://a:9092/shop?ca=x.pem',
  'kafka://a:9092/shop?sasl=gssapi',
])('%s is none', (address) => {
  expect(codeOf(address)).toBe('log_url_invalid')
})

test('credentials come from the environment', () => {
  expect(codeOf('kafka://a:1/shop?sasl=plain')).toBe('credentials_missing')
  expect(codeOf('kafka://a:1/shop?sasl=plain', { THREADLOG_KAFKA_PASSWORD: 'hunter2' })).toBe('credentials_missing')
})
