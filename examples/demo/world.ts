import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openThreadlog, type Threadlog } from '../../src/index.ts'
import { Child } from '../support/child.ts'
import { hasProvider, modelEnv } from '../support/model.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { hasPython } from '../support/python.ts'
import { Effects } from './effects.ts'
import { supportScript } from './script.ts'

export interface WorldOptions {
  /** Where the files go. Default: a new temporary directory. */
  dir?: string
  /** Leave the files behind; those in a directory of the caller's always stay. */
  keep?: boolean
}

/** What the demo plays in: a directory, a model server, an engine and a payout process of their own, and a client that runs nothing. */
export class World implements AsyncDisposable {
  readonly dir: string
  /** The log: one SQLite file. */
  readonly file: string
  readonly effects: Effects
  readonly model: string
  readonly threads: Threadlog
  engine: Child | undefined
  payouts: Child | undefined
  readonly #server: ModelServer | undefined
  readonly #clean: () => void

  private constructor(dir: string, clean: () => void, server: ModelServer | undefined, threads: Threadlog) {
    this.dir = dir
    this.file = logFile(dir)
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
    const threads = await openThreadlog({ log: `sqlite:${logFile(dir)}`, application: 'shop' })
    return new World(dir, clean, server, threads)
  }

  /** @param hangIn the tool whose body does its work and then never returns */
  async startEngine(hangIn?: string): Promise<Child> {
    const args = [local('./engine.ts'), this.file, this.effects.file, ...(hangIn === undefined ? [] : [hangIn])]
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

  /** Starts the payout process, in Python if it is there; gives the language it is written in. */
  async startPayouts(language: string | undefined = hasPython() ? 'python' : 'node'): Promise<string> {
    this.payouts =
      language === 'python'
        ? new Child('The payout process', 'python3', [local('./payouts.py'), this.file])
        : new Child('The payout process', process.execPath, [local('./payouts.ts'), this.file])
    const ready = await this.payouts.says<{ event: string; language: string }>('ready')
    return ready.language
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine?.kill()
    await this.payouts?.kill()
    await this.threads.close()
    await this.#server?.close()
    this.#clean()
    process.off('exit', this.#clean)
  }
}

const logFile = (dir: string): string => join(dir, 'shop.db')
const local = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
