import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { clientOf, createTopics, DEFAULT_PARTITIONS } from '../../src/log/kafka/index.ts'
import { KAFKA_VERSION } from '../../test/support/kafka/version.ts'
import { freePorts } from '../free-ports.ts'
import type { Line } from '../report.ts'
import { DelayingProxy } from './proxy.ts'

const script = join(import.meta.dirname, '../../scripts/kafka/broker.sh')
/** As a broker is run: with all of the JVM's compilers. The script's own choice is for quick starts. */
const JVM = '-XX:TieredStopAtLevel=4'
const HEAP = '512m'

/** A broker of one node in a new directory, with a second listener behind a proxy that delays. */
export class BenchBroker {
  readonly brokers: readonly string[]
  /** Addresses by which every answer comes late by what `proxy` is told. */
  readonly delayed: readonly string[]
  readonly proxy: DelayingProxy
  readonly #folder: string

  private constructor(folder: string, port: number, proxy: DelayingProxy) {
    this.#folder = folder
    this.brokers = [`127.0.0.1:${port}`]
    this.delayed = [`127.0.0.1:${proxy.port}`]
    this.proxy = proxy
  }

  static async start(): Promise<BenchBroker> {
    const run = promisify(execFile)
    await run('bash', [script, '--install'])
    const [port, controller, behind] = (await freePorts(3)) as [number, number, number]
    const proxy = await DelayingProxy.start(behind)
    const folder = mkdtempSync(join(tmpdir(), 'threadlog-bench-kafka-'))
    const at = (name: string, number: number) => `${name}://127.0.0.1:${number}`
    const both = (second: number) => [at('PLAINTEXT', port), at('DELAYED', second), at('CONTROLLER', controller)].join(',')
    const settings = [
      `listeners=${both(behind)}`,
      `advertised.listeners=${both(proxy.port)}`,
      'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,DELAYED:PLAINTEXT,CONTROLLER:PLAINTEXT',
    ]
    const ports = ['--port', `${port}`, '--controller-port', `${controller}`, '--heap', HEAP, '--with', `${process.pid}`]
    const args = [script, join(folder, 'broker'), ...ports, ...settings.flatMap((each) => ['--prop', each])]
    await run('bash', args, { env: { ...process.env, KAFKA_JVM: JVM } })
    return new BenchBroker(folder, port, proxy)
  }

  /** Makes the topics of a log. Answers its prefix. */
  async newLog(): Promise<string> {
    const prefix = `b${randomBytes(4).toString('hex')}`
    await createTopics(clientOf({ brokers: this.brokers }), { prefix })
    return prefix
  }

  /** What every line says of it. */
  settings(): Line['settings'] {
    return {
      kafka: KAFKA_VERSION,
      brokers: 1,
      partitions: DEFAULT_PARTITIONS,
      replication: 1,
      acks: 'all',
      flush: 'page cache',
      broker_directory: 'new',
      broker_jvm: `${JVM} -Xmx${HEAP}`,
      replica_synchronous: 'NORMAL',
    }
  }

  stop(): void {
    this.proxy.close()
    execFileSync('bash', [script, '--kill', join(this.#folder, 'broker')])
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
