import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { KAFKA_VERSION, SCRIPTS } from './version.ts'

const run = promisify(execFile)
const script = fileURLToPath(new URL('broker.sh', SCRIPTS))
const libs = process.env['KAFKA_LIBS'] ?? fileURLToPath(new URL(`../../.tmp/kafka/${KAFKA_VERSION}`, SCRIPTS))

/** Why no broker can be started from jars here; undefined if one can, as far as that is seen without starting it. */
export function withoutJars(): string | undefined {
  if (!onPath(process.env['JAVA'] ?? 'java')) return 'no Java (java) is on the path'
  if (!existsSync(join(libs, '.complete')) && !onPath('mvn'))
    return `no Maven (mvn) is on the path, and no jars of Kafka ${KAFKA_VERSION} are in .tmp/kafka`
  return undefined
}

export interface OwnBrokerOptions {
  /** Broker settings (`server.properties`) beside those of the script. */
  settings?: Readonly<Record<string, string | number>>
  /** Also listen with SASL, without TLS: PLAIN `app`/`app-secret`, SCRAM-SHA-256 `scram`/`scram-secret`. */
  sasl?: boolean
  /** Also listen with TLS and SASL (PLAIN `app`/`app-secret`, SCRAM `scram`/`scram-secret`): a PEM file of its key and certificate. */
  tls?: string
  /** Takes only clients with a certificate of this authority: a PEM file. */
  clients?: string
}

/** A broker of its own directory and ports, for tests that kill, freeze or restart it. Both outlive `stop`; `remove` ends them. */
export class OwnBroker {
  readonly folder: string
  readonly brokers: readonly string[]
  /** Addresses of the listener with SASL, if it has one. */
  readonly sasl: readonly string[]
  /** Address of the listener with TLS, if it has one. */
  readonly tls: readonly string[]
  readonly #arguments: readonly string[]
  #pid: number | undefined

  private constructor(
    folder: string,
    ports: readonly number[],
    { settings: given, sasl: asks, tls: pem, clients }: OwnBrokerOptions,
  ) {
    const [port, controller] = ports
    const sasl = asks ? ports[2] : undefined
    const secure = pem === undefined ? undefined : ports.at(-1)!
    const settings = { ...(pem !== undefined && tlsSettings(port!, controller!, secure!, pem, clients)), ...given }
    this.tls = secure === undefined ? [] : [`localhost:${secure}`]
    this.folder = folder
    this.brokers = [`127.0.0.1:${port}`]
    this.sasl = sasl === undefined ? [] : [`127.0.0.1:${sasl}`]
    this.#arguments = [
      ...['--port', `${port}`, '--controller-port', `${controller}`, '--with', `${process.pid}`],
      ...(sasl === undefined ? [] : ['--sasl-port', `${sasl}`]),
      ...Object.entries(settings).flatMap(([name, value]) => ['--prop', `${name}=${value}`]),
    ]
  }

  /** Brings the jars if they are not there, and starts a broker. @throws Error with what the broker said, if it does not start */
  static async start(options: OwnBrokerOptions = {}): Promise<OwnBroker> {
    await broker(['--install'])
    for (let tries = 1; ; tries++) {
      const folder = mkdtempSync(join(tmpdir(), 'threadlog-kafka-'))
      const own = new OwnBroker(
        folder,
        await freePorts(2 + Number(options.sasl ?? false) + Number(options.tls !== undefined)),
        options,
      )
      try {
        await own.start()
        return own
      } catch (error) {
        await own.remove()
        // Another process may have taken a port since it was seen free.
        if (tries === 3 || !/Address already in use/.test(String(error))) throw error
      }
    }
  }

  /** Starts it again, with the records it had. Returns when it answers. */
  async start(): Promise<void> {
    const answer = await broker([join(this.folder, 'broker'), ...this.#arguments])
    this.#pid = Number.parseInt(answer, 10)
  }

  /** Ends it as a power cut of the process would: SIGKILL. */
  kill(): Promise<void> {
    return this.#end('--kill')
  }

  /** Ends it in order. */
  stop(): Promise<void> {
    this.thaw()
    return this.#end('--stop')
  }

  /** `kill` and `start`, or with `'stop'` in order. */
  async restart(how: 'kill' | 'stop' = 'kill'): Promise<void> {
    await this[how]()
    await this.start()
  }

  /** SIGSTOP: connections stay open, nothing answers. */
  freeze(): void {
    if (this.#pid !== undefined) process.kill(this.#pid, 'SIGSTOP')
  }

  thaw(): void {
    if (this.#pid !== undefined) process.kill(this.#pid, 'SIGCONT')
  }

  /** Ends it and removes its directory. */
  async remove(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove()
  }

  async #end(how: '--kill' | '--stop'): Promise<void> {
    this.#pid = undefined
    await broker([how, join(this.folder, 'broker')])
  }
}

async function broker(args: readonly string[]): Promise<string> {
  const env = { ...process.env, KAFKA_LIBS: libs }
  try {
    return (await run('bash', [script, ...args], { env, maxBuffer: 2 ** 24 })).stdout
  } catch (error) {
    const { stderr = '', stdout = '' } = error as { stderr?: string; stdout?: string }
    throw new Error(`broker.sh ${args[0]}: ${`${stdout}${stderr}`.trim() || String(error)}`)
  }
}

const onPath = (command: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => isProgram(join(folder, command))) ||
  (command.includes('/') && isProgram(command))

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * Ports nobody listens on, below those the system gives to outgoing connections: while a broker is down, one of those could take its port,
 * and a client that knocks there again and again could even connect to itself.
 */
async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>()
  while (found.size < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (await isFree(port)) found.add(port)
  }
  return [...found]
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })

/** Without the listener of `sasl`: one broker has one of them. */
function tlsSettings(port: number, controller: number, secure: number, pem: string, clients?: string): Record<string, string> {
  const login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_app="app-secret";'
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;'
  const trusted = { 'ssl.truststore.type': 'PEM', 'listener.name.sasl_ssl.ssl.client.auth': 'required' }
  return {
    ...(clients !== undefined && { ...trusted, 'ssl.truststore.location': clients }),
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller},SASL_SSL://127.0.0.1:${secure}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},SASL_SSL://localhost:${secure}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL',
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
    'listener.name.sasl_ssl.plain.sasl.jaas.config': login,
    'listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config': scram,
    'listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config': scram,
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': pem,
  }
}
