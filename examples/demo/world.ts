import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openThreadlog, type Threadlog } from '../../src/index.ts'
import { Child } from '../support/child.ts'
import { hasProvider, modelEnv } from '../support/model.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { Effects } from './effects.ts'
import { kafkaPlace, type LogPlace, sqlitePlace } from './log-place.ts'
import { supportScript } from './script.ts'

export interface WorldOptions {
  /** Where the files go. Default: a new temporary directory. */
  dir?: string
  /** Leave the files behind; those in a directory of the caller's always stay. */
  keep?: boolean
  /** On a broker instead of in a file. */
  kafka?: boolean
}

/** What the demo plays in: a directory, a model server, an engine and a payout process of their own, and a client that runs nothing. */
export class World implements AsyncDisposable {
  readonly dir: string
  readonly place: LogPlace
  readonly effects: Effects
  readonly model: string
  readonly threads: Threadlog
  engine: Child | undefined
  payouts: Child | undefined
  readonly #server: ModelServer | undefined
  readonly #clean: () => void

  private constructor(dir: string, clean: () => void, server: ModelServer | undefined, place: LogPlace, threads: Threadlog) {
    this.dir = dir
    this.place = place
    this.effects = new Effects(join(dir, 'effects.jsonl'))
    this.model = server ? 'a scripted model over HTTP' : (process.env['OPENAI_MODEL'] ?? '')
    this.threads = threads
    this.#server = server
    this.#clean = clean
  }

  static async open(o: WorldOptions = {}): Promise<World> {
    const dir = o.dir === undefined ? mkdtempSync(join(tmpdir(), 'threadlog-demo-')) : resolve(o.dir)
    mkdirSync(dir, { recursive: true })
    if (existsSync(logFile(dir))) throw new Error(`There is a log in ${dir} already.`)
    const clean = o.keep || o.dir !== undefined ? () => {} : () => rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
    process.on('exit', clean)
    const server = hasProvider() ? undefined : await startModelServer(supportScript)
    const place = o.kafka ? await kafkaPlace(dir) : sqlitePlace(logFile(dir))
    const threads = await openThreadlog({ log: (await place.open()) as 'memory', application: 'shop' })
    return new World(dir, clean, server, place, threads)
  }

  /** @param hangIn the tool whose body does its work and then never returns */
  async startEngine(hangIn?: string): Promise<Child> {
    const args = [local('./engine.ts'), this.place.address, this.effects.file, ...(hangIn === undefined ? [] : [hangIn])]
    this.engine = new Child('The engine', process.execPath, args, this.#server ? modelEnv(this.#server.url) : {})
    await this.engine.says('serving')
    return this.engine
  }

  /** `kill -9`. Gives the process id it had. */
  async killEngine(): Promise<number> {
    const { engine } = this
    await engine?.kill()
    this.engine = undefined
    return engine?.pid ?? 0
  }

  /** Starts the payout process, in Python if it can be; gives the language it is written in. */
  async startPayouts(language?: string): Promise<string> {
    const { command, args } = this.place.payouts(language)
    this.payouts = new Child('The payout process', command, args)
    const ready = await this.payouts.says<{ event: string; language: string }>('ready')
    return ready.language
  }

  /** Resolves once the checkpoint of the end is out: on Kafka the engine publishes it after the run has ended. */
  async publishedTheEnd(): Promise<void> {
    for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; await sleep(50)) {
      const last = (await this.place.checkpoints(this.threads.backend)).at(-1)
      if (last && last.status !== 'suspended') return
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine?.kill()
    await this.payouts?.kill()
    await this.threads.close()
    // One that was handed over open is not closed with them.
    await this.threads.backend.close()
    await this.place.close()
    await this.#server?.close()
    this.#clean()
    process.off('exit', this.#clean)
  }
}

const PATIENCE_MS = 15_000
const logFile = (dir: string): string => join(dir, 'shop.db')
const local = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
