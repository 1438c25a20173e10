import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe } from 'vitest'

const run = promisify(execFile)
const VERSION = '3.3.3'
const JVMS = '/usr/lib/jvm'
/** Confluent's protocol as Apicurio serves it. */
const PATH = '/apis/ccompat/v7'
const READY_MS = 60_000

/** A JDK of 21 or newer: the oldest that this registry runs on. */
function java(): string | undefined {
  const given = process.env['REGISTRY_JAVA']
  if (given) return given
  const found = existsSync(JVMS) ? readdirSync(JVMS) : []
  const jdk = found.find((name) => Number(/^temurin-(\d+)/.exec(name)?.[1] ?? 0) >= 21)
  return jdk && join(JVMS, jdk, 'bin/java')
}

const onPath = (command: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, command)))

function absence(own = false): string | undefined {
  if (process.env['REGISTRY_URL'] && !own) return undefined
  if (!java())
    return `no schema registry: REGISTRY_URL is not set, and no JDK of 21 or newer is in ${JVMS} (REGISTRY_JAVA names another)`
  return onPath('mvn') ? undefined : 'no schema registry: REGISTRY_URL is not set, and no Maven (mvn) is on the path'
}

/** `describe` for tests on a real registry: of `REGISTRY_URL`, else one of their own in memory; skipped, or failing where one is required. */
export function describeRegistry(name: string, tests: (url: () => string) => void): void {
  const reason = absence()
  if (reason !== undefined && process.env['REQUIRE_KAFKA'] !== '1') {
    describe.skip(`${name} [${reason}]`, () => tests(() => ''))
    return
  }
  describe(name, () => {
    let registry: { url: string; stop(): void } | undefined
    beforeAll(async () => {
      if (reason === undefined) registry = await start()
    }, 120_000)
    afterAll(() => registry?.stop())
    beforeEach(() => {
      if (reason !== undefined) throw new Error(reason)
    })
    tests(() => registry!.url)
  })
}

async function start(): Promise<{ url: string; stop(): void }> {
  const given = process.env['REGISTRY_URL']
  if (given) return { url: given, stop() {} }
  const { child, url } = await launch({ port: await freePort() })
  return { url, stop: () => void child.kill() }
}

/** A registry that a test may kill. It keeps its schemas and their ids. */
export interface OwnRegistry extends AsyncDisposable {
  readonly url: string
  /** SIGKILL. Returns when it is gone. */
  kill(): Promise<void>
  /** Starts it again, at its address, with what it had. */
  start(): Promise<void>
}

/** @throws where there is no Java or Maven for one, which says why */
export async function ownRegistry(): Promise<OwnRegistry> {
  const folder = mkdtempSync(join(tmpdir(), 'registry-'))
  const port = await freePort()
  let { child, url } = await launch({ port, folder })
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  return {
    url,
    kill,
    start: async () => {
      child = (await launch({ port, folder })).child
    },
    [Symbol.asyncDispose]: async () => {
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Why there can be no registry of one's own; undefined where there can. */
export const ownRegistryMissing = (): string | undefined => absence(true)

/** In memory, or in a folder, in which what it has acknowledged outlives it. */
async function launch({ port, folder: data }: { port: number; folder?: string }): Promise<{ child: ChildProcess; url: string }> {
  const folder = await installed()
  const settings = {
    'quarkus.http.host': '127.0.0.1',
    'quarkus.http.port': port,
    'quarkus.management.host': '127.0.0.1',
    'quarkus.management.port': await freePort(),
    'quarkus.http.access-log.enabled': false,
    ...(data && { 'apicurio.datasource.url': `jdbc:h2:file:${data}/registry;WRITE_DELAY=0;DB_CLOSE_ON_EXIT=FALSE` }),
  }
  const flags = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`)
  const jvm = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
  const child = spawn(java()!, [...jvm, ...flags, '-jar', join(folder, 'quarkus-run.jar')], { stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}${PATH}`
  for (const end = performance.now() + READY_MS; performance.now() < end && child.exitCode === null; ) {
    const answer = await fetch(`${url}/subjects`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
    if (answer?.ok) return { child, url }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  child.kill('SIGKILL')
  throw new Error('the registry did not start')
}

/** Unpacked once; from Maven Central through Maven, which checks what it gets. */
async function installed(): Promise<string> {
  const folder = fileURLToPath(new URL(`../../../.tmp/registry/${VERSION}`, import.meta.url))
  if (existsSync(folder)) return folder
  const name = 'apicurio-registry-app'
  await run('mvn', ['-q', '-B', 'dependency:get', '-Dtransitive=false', `-Dartifact=io.apicurio:${name}:${VERSION}:tar.gz:all`])
  const archive = join(homedir(), `.m2/repository/io/apicurio/${name}/${VERSION}/${name}-${VERSION}-all.tar.gz`)
  const partly = `${folder}.${process.pid}`
  mkdirSync(partly, { recursive: true })
  await run('tar', ['xzf', archive, '-C', partly])
  if (!existsSync(folder)) renameSync(partly, folder)
  return folder
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
