import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir } from 'node:os'
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

function absence(): string | undefined {
  if (process.env['REGISTRY_URL']) return undefined
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
  const folder = await installed()
  const [port, management] = [await freePort(), await freePort()]
  const settings = {
    'quarkus.http.host': '127.0.0.1',
    'quarkus.http.port': port,
    'quarkus.management.host': '127.0.0.1',
    'quarkus.management.port': management,
    'quarkus.http.access-log.enabled': false,
  }
  const flags = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`)
  const jvm = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
  const child = spawn(java()!, [...jvm, ...flags, '-jar', join(folder, 'quarkus-run.jar')], { stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}${PATH}`
  for (const end = performance.now() + READY_MS; performance.now() < end && child.exitCode === null; ) {
    const answer = await fetch(`${url}/subjects`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
    if (answer?.ok) return { url, stop: () => void child.kill() }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  child.kill()
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
