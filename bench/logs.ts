import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { addressOf } from './kafka/address.ts'
import type { BenchBroker } from './kafka/broker.ts'

const SUFFIXES = ['', '-wal', '-shm']
/** Names of replicas are made from this. */
const REPLICAS = '.tmp/bench/replica.db'

/** Addresses of new logs, one for each measurement, beside the given one. Only files made here are removed. */
export class Logs {
  readonly kind: 'sqlite' | 'memory' | 'kafka'
  /** On Kafka: the broker, started for this run. */
  readonly broker: BenchBroker | undefined
  readonly #file: string
  readonly #made = new Set<string>()
  #count = 0

  private constructor(kind: Logs['kind'], file: string, broker?: BenchBroker) {
    this.kind = kind
    this.#file = file
    this.broker = broker
    if (kind !== 'memory') mkdirSync(dirname(file), { recursive: true })
  }

  /** @param address `memory`, `kafka`, or `sqlite:` and the path the names are made from */
  static async open(address: string): Promise<Logs> {
    if (address === 'memory') return new Logs('memory', '')
    // Loaded only then.
    if (address === 'kafka') {
      const { BenchBroker } = await import('./kafka/broker.ts')
      return new Logs('kafka', REPLICAS, await BenchBroker.start())
    }
    const [, file] = /^sqlite:(.+)$/.exec(address) ?? []
    if (file === undefined) throw new Error(`--log ${address}: expected memory, kafka or sqlite:<path>`)
    return new Logs('sqlite', file)
  }

  /** The folder of the logs; undefined in memory. */
  get folder(): string | undefined {
    return this.kind === 'memory' ? undefined : dirname(this.#file)
  }

  /** Path of a file that does not exist yet; `:memory:` in memory. */
  newFile(): string {
    if (this.kind === 'memory') return ':memory:'
    for (;;) {
      const file = `${this.#file.replace(/\.db$/, '')}-${process.pid}-${++this.#count}.db`
      if (existsSync(file)) continue
      this.#made.add(file)
      return file
    }
  }

  /** Address of a log that does not exist yet. @param counted on Kafka: requests are counted on their way */
  async next(counted = false): Promise<string> {
    if (this.broker) {
      const { brokers, delayed } = this.broker
      return addressOf(counted ? delayed : brokers, await this.broker.newLog(), this.newFile())
    }
    return this.kind === 'memory' ? 'memory' : `sqlite:${this.newFile()}`
  }

  newFolder(name: string): string {
    const folder = join(dirname(this.#file || join(process.cwd(), '.tmp/bench/x')), `${name}-${process.pid}-${++this.#count}`)
    mkdirSync(folder, { recursive: true })
    this.#made.add(folder)
    return folder
  }

  remove(): void {
    for (const file of this.#made) for (const suffix of SUFFIXES) rmSync(file + suffix, { force: true, recursive: true })
    this.#made.clear()
  }

  close(): void {
    this.remove()
    this.broker?.stop()
  }
}
