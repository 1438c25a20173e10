import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Suspended } from './closed-loop.ts'
import { freePorts } from './free-ports.ts'
import { connect, send } from './http-client.ts'
import { pool } from './statistics.ts'
import { resultOf } from './workload.ts'

const PEERS = join(import.meta.dirname, 'peers')

/** A Restate server and a service of its SDK, both in processes of their own, with the server's own defaults for durability. */
export class RestateSystem implements Suspended {
  readonly #server: ChildProcess
  readonly #service: ChildProcess
  readonly #ingress: string
  readonly #waits = new Map<number, string>()
  onResumed: Suspended['onResumed'] = () => {}
  onRequest: (order: number) => void = () => {}

  private constructor(server: ChildProcess, service: ChildProcess, ingress: string) {
    this.#server = server
    this.#service = service
    this.#ingress = ingress
    service.on('message', ({ requests = [], asked = [] }: Record<'requests' | 'asked', [number, never][]>) => {
      for (const [order, id] of requests) {
        this.#waits.set(order, id)
        this.onRequest(order)
      }
      for (const [order, at] of asked) this.onResumed(order, at)
    })
  }

  /** @param folder a new folder for the server's data */
  static async start(folder: string): Promise<RestateSystem> {
    const binary = join(
      PEERS,
      'node_modules/@restatedev',
      `restate-server-${process.platform}-${process.arch}`,
      'bin/restate-server',
    )
    if (!existsSync(binary)) throw new Error('Restate is not installed: npm --prefix bench/peers ci')
    const [node, ingress, admin, port] = await freePorts(4)
    const options = ['--node-name', 'bench', '--base-dir', folder]
    const network = ['--listen-mode', 'tcp', '--bind-ip', '127.0.0.1', '--bind-port', String(node)]
    const server = spawn(binary, [...options, ...network], {
      stdio: 'ignore',
      env: {
        ...process.env,
        RESTATE_INGRESS__BIND_PORT: String(ingress),
        RESTATE_ADMIN__BIND_PORT: String(admin),
        RESTATE_LOG_FILTER: 'error',
        RESTATE_DISABLE_TELEMETRY: 'true',
      },
    })
    const service = fork(join(PEERS, 'service.mjs'), [String(port)], { env: { ...process.env, RESTATE_LOGGING: 'ERROR' } })
    const system = new RestateSystem(server, service, `http://127.0.0.1:${ingress}`)
    await once(service, 'message')
    await untilOk(() => send('GET', `http://127.0.0.1:${admin}/health`))
    const deployment = JSON.stringify({ uri: `http://127.0.0.1:${port}`, force: true })
    await untilOk(() => send('POST', `http://127.0.0.1:${admin}/deployments`, deployment))
    return system
  }

  /** Starts orders 0 … n-1 and resolves when each waits for its result. */
  async open(n: number): Promise<void> {
    const all = new Promise<void>((resolve) => {
      this.onRequest = () => this.#waits.size === n && resolve()
    })
    await pool(n, 64, async (order) => {
      const { status, body } = await send('POST', `${this.#ingress}/payer/run/send`, String(order))
      if (status > 299) throw new Error(`Restate: order ${order} was not taken: ${status} ${body}`)
    })
    await all
    // The last of them write down that they wait.
    await new Promise((resolve) => setTimeout(resolve, 500))
    this.onRequest = () => {}
  }

  async connect(count: number): Promise<void> {
    await connect(`${this.#ingress}/restate/health`, count)
  }

  async complete(order: number): Promise<void> {
    const url = `${this.#ingress}/restate/awakeables/${this.#waits.get(order)}/resolve`
    const { status, body } = await send('POST', url, JSON.stringify(resultOf(order)))
    if (status > 299) throw new Error(`Restate: the result of order ${order} was refused: ${status} ${body}`)
  }

  async stop(): Promise<void> {
    const gone = Promise.all([once(this.#server, 'exit'), once(this.#service, 'exit')])
    this.#service.kill('SIGKILL')
    this.#server.kill('SIGKILL')
    await gone
  }
}

async function untilOk(ask: () => Promise<{ status: number }>): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const answer = await ask().catch(() => undefined)
    if (answer && answer.status < 300) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('Restate did not come up in 30 s.')
}
