import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { kafkaAddress } from '../../../src/log/kafka/index.ts'
import { cli } from '../../cli/support/cli.ts'
import { describeOwnKafka, kafkaPlace, ownBroker } from '../../support/kafka/index.ts'

const run = promisify(execFile)

describeOwnKafka('a cluster with TLS', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'threadlog-tls-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** A certificate for this machine that answers for itself, and its key. */
  async function certificate(name: string): Promise<{ ca: string; key: string; pem: string }> {
    const [key, ca, pem] = ['key', 'crt', 'pem'].map((end) => join(folder, `${name}.${end}`)) as [string, string, string]
    const made = [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
      '-keyout',
      key,
      '-out',
      ca,
    ]
    await run('openssl', [...made, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'])
    writeFileSync(pem, readFileSync(key, 'utf8') + readFileSync(ca, 'utf8'))
    return { ca, key, pem }
  }

  test('is used by its address and the environment; a wrong certificate or password is told, and nothing of it', async () => {
    const [ours, other] = [await certificate('ours'), await certificate('other')]
    await using broker = await ownBroker({ tls: ours.pem })
    await using place = await kafkaPlace({ brokers: broker.brokers })
    const url = (ca?: string) =>
      `kafka://${broker.tls[0]}/${place.prefix}?tls=true&sasl=plain${ca === undefined ? '' : `&ca=${encodeURIComponent(ca)}`}`
    const env = (password: string) => ({ THREADLOG_KAFKA_USERNAME: 'app', THREADLOG_KAFKA_PASSWORD: password })
    const opened = (address: string, password: string) => {
      const { replica: _, ...rest } = kafkaAddress(address, env(password))
      return place.open(rest)
    }
    await opened(url(ours.ca), 'app-secret')
    for (const [address, password, code] of [
      [url(ours.ca), 'guessed-secret', 'log_unauthorized'],
      [url(other.ca), 'app-secret', 'log_untrusted'],
      [url(), 'app-secret', 'log_untrusted'],
    ] as const) {
      const error = await opened(address, password).catch((error: unknown) => error)
      expect(error).toMatchObject({ code, disposition: 'reject' })
      expect(JSON.stringify(error) + String(error)).not.toMatch(/secret|BEGIN/)
    }
    const check = (ca: string, password: string) => cli(['topics', 'check', '--log', url(ca)], { env: env(password) })
    expect(await check(ours.ca, 'app-secret')).toMatchObject({ code: 0 })
    for (const shown of [await check(ours.ca, 'guessed-secret'), await check(other.ca, 'app-secret')]) {
      expect(shown.code).toBeGreaterThan(1)
      expect(shown.out + shown.err).not.toMatch(/secret|BEGIN/)
    }
  }, 120_000)

  test('takes SCRAM over TLS, and clients that show a certificate of its authority alone', async () => {
    const [ours, client, stranger] = [await certificate('server'), await certificate('client'), await certificate('stranger')]
    await using broker = await ownBroker({ tls: ours.pem, clients: client.ca })
    await using place = await kafkaPlace({ brokers: broker.brokers })
    const opened = (query: Record<string, string>, user: string) => {
      const url = `kafka://${broker.tls[0]}/${place.prefix}?${new URLSearchParams({ tls: 'true', ca: ours.ca, ...query })}`
      const env = { THREADLOG_KAFKA_USERNAME: user, THREADLOG_KAFKA_PASSWORD: `${user}-secret` }
      const { replica: _, ...rest } = kafkaAddress(url, env)
      return place.open(rest)
    }
    const shows = ({ ca, key }: { ca: string; key: string }) => ({ cert: ca, key })
    for (const sasl of ['plain', 'scram-sha-256', 'scram-sha-512'])
      await (await opened({ sasl, ...shows(client) }, sasl === 'plain' ? 'app' : 'scram')).close()
    for (const query of [{}, shows(stranger)]) {
      const error = await opened({ sasl: 'scram-sha-256', ...query }, 'scram').catch((error: unknown) => error)
      expect(error).toMatchObject({ code: expect.stringMatching(/^log_(unauthorized|untrusted|unavailable)$/) })
      expect(JSON.stringify(error) + String(error)).not.toMatch(/secret|BEGIN/)
    }
    const guessed = await opened({ sasl: 'scram-sha-512', ...shows(client) }, 'guessed').catch((error: unknown) => error)
    expect(guessed).toMatchObject({ code: 'log_unauthorized', disposition: 'reject' })
  }, 120_000)
})
