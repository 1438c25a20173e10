import { COMPATIBILITY, SchemaRegistry, SchemaType } from '@kafkajs/confluent-schema-registry'
import { fatal, isThreadlogError, reject, retryLater, type ThreadlogError } from '../../base/index.ts'
import type { AvroRecord } from '../../events/index.ts'

/** A schema registry that speaks Confluent's protocol. */
export interface RegistryConnection {
  /** Base of its paths, such as `http://localhost:8081`; without credentials. */
  url: string
  username?: string
  password?: string
  /** Milliseconds an answer may take. Default 5,000. */
  timeoutMs?: number
}

/** A version of a subject. */
export interface RegisteredVersion {
  id: number
  version: number
  /** The schema as parsed; undefined if it is no Avro in one document. */
  avro: unknown
}

export const LEVEL = COMPATIBILITY.FULL_TRANSITIVE
const TIMEOUT_MS = 5_000
/** Times the level of a subject is set and read back: others may set theirs meanwhile. */
const TRIES = 5
const TYPE = 'application/vnd.schemaregistry.v1+json'

/**
 * The part of the protocol that is used. Registering goes through the client library; levels and versions, which it does not offer, through
 * requests of our own.
 */
export class RegistryClient {
  readonly #base: string
  readonly #headers: Record<string, string>
  readonly #timeoutMs: number
  readonly #library: SchemaRegistry

  /** @throws ThreadlogError `registry_url_invalid` */
  constructor({ url, username, password, timeoutMs = TIMEOUT_MS }: RegistryConnection) {
    this.#base = baseOf(url)
    this.#timeoutMs = timeoutMs
    const auth = username === undefined ? undefined : { username, password: password ?? '' }
    const basic = auth && Buffer.from(`${auth.username}:${auth.password}`).toString('base64')
    this.#headers = { accept: TYPE, 'content-type': TYPE, ...(basic && { authorization: `Basic ${basic}` }) }
    this.#library = new SchemaRegistry({
      host: this.#base,
      ...(auth && { auth }),
      // The library itself waits for ever.
      middlewares: [() => ({ prepareRequest: async (next) => (await next()).enhance({ timeout: timeoutMs }) })],
    })
  }

  /** All subjects. Asked first: it tells a registry from another server. */
  async subjects(): Promise<Set<string>> {
    const found = await this.#json('GET', '/subjects')
    if (!Array.isArray(found)) throw noRegistry()
    return new Set(found as string[])
  }

  /** Versions of a subject, oldest first; none if there is no such subject. */
  async versions(subject: string): Promise<RegisteredVersion[]> {
    const path = `/subjects/${encodeURIComponent(subject)}/versions`
    const numbers = await this.#json('GET', path, { missing: [] })
    if (!Array.isArray(numbers)) throw noRegistry()
    const found: RegisteredVersion[] = []
    for (const version of numbers as number[]) {
      // One that is deleted in between is none.
      const answer = (await this.#json('GET', `${path}/${version}`, { missing: null })) as Record<string, unknown> | null
      if (answer && typeof answer['id'] === 'number') found.push({ id: answer['id'], version, avro: avroOf(answer) })
    }
    return found
  }

  /** The level of a subject; undefined if it has none of its own. */
  async level(subject: string): Promise<string | undefined> {
    const answer = (await this.#json('GET', `/config/${encodeURIComponent(subject)}`, { missing: {} })) as Record<string, unknown>
    const level = answer['compatibilityLevel']
    return typeof level === 'string' ? level.toUpperCase() : undefined
  }

  /** Sets the level, which may stand before the subject does: registering first would check nothing, or against another level. */
  async setLevel(subject: string): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      if ((await this.level(subject)) === LEVEL) return
      // 409: somebody else sets it at this moment; what then stands is read back.
      await this.#json('PUT', `/config/${encodeURIComponent(subject)}`, { body: { compatibility: LEVEL }, conflict: null })
    }
    throw retryLater('registry_unavailable', 'The level of a subject does not stay as it is set.', {
      path: subject,
      expected: LEVEL,
      hint: 'Somebody else sets it too.',
    })
  }

  /** Registers a schema; the same one again gets the same id. @throws ThreadlogError `schema_incompatible` */
  async register(subject: string, avro: AvroRecord): Promise<number> {
    try {
      const schema = { type: SchemaType.AVRO as const, schema: JSON.stringify(avro) }
      return (await this.#library.register(schema, { subject, compatibility: LEVEL })).id
    } catch (error) {
      throw translate(error, subject)
    }
  }

  async #json(
    method: string,
    path: string,
    { body, ...answers }: { body?: object; missing?: unknown; conflict?: unknown } = {},
  ): Promise<unknown> {
    let response: Response
    try {
      const signal = AbortSignal.timeout(this.#timeoutMs)
      const init = { method, headers: this.#headers, signal, redirect: 'error' as const }
      response = await fetch(this.#base + path, body ? { ...init, body: JSON.stringify(body) } : init)
      if (response.status === 404 && 'missing' in answers) return answers.missing
      if (response.status === 409 && 'conflict' in answers) return answers.conflict
      if (response.ok) return await response.json()
      await response.body?.cancel()
    } catch (error) {
      if (error instanceof SyntaxError) throw noRegistry()
      throw unavailable({}, error)
    }
    throw refused(response.status, path)
  }
}

/** Its schema, if it is Avro that needs no other subject. */
function avroOf({ schema, schemaType = 'AVRO', references }: Record<string, unknown>): unknown {
  if (typeof schema !== 'string' || schemaType !== 'AVRO' || (Array.isArray(references) && references.length > 0))
    return undefined
  try {
    return JSON.parse(schema)
  } catch {
    return undefined
  }
}

function baseOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const fits = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash
  if (fits) return url.href.replace(/\/+$/, '')
  throw reject('registry_url_invalid', 'This is not the address of a schema registry.', {
    path: 'registry',
    expected: 'http://host:port or https://host:port, with a path if it has one, and without credentials',
  })
}

/** What the library throws: connections that fail come as status 400, told from refusals by their text. */
function translate(error: unknown, path: string): ThreadlogError {
  if (isThreadlogError(error)) return error
  const { status, message = '' } = (error ?? {}) as { status?: number; message?: string }
  if (status === undefined && /Compatibility does not match/.test(message))
    return retryLater('registry_unavailable', 'The level of a subject was changed meanwhile.', { path, expected: LEVEL })
  if (status === undefined || (status === 400 && /E[A-Z]{4,}|[Tt]imeout|socket/.test(message))) return unavailable({}, error)
  return refused(status, path)
}

function refused(status: number, path: string): ThreadlogError {
  const details = { status }
  if (status === 409)
    return fatal('schema_incompatible', 'The registry has a schema of this subject that ours is not compatible with.', {
      path,
      expected: LEVEL,
      hint: 'Another program or another release registered it: look at the subject. `threadlog schemas check` names what differs.',
      details,
    })
  if (status === 401 || status === 403)
    return reject('registry_unauthorized', 'The registry does not accept these credentials.', {
      path: 'registry',
      expected: 'THREADLOG_REGISTRY_USERNAME, and THREADLOG_REGISTRY_PASSWORD or THREADLOG_REGISTRY_PASSWORD_FILE',
      details,
    })
  if (status >= 500 || status === 429) return unavailable(details)
  if (status === 404) return noRegistry()
  return reject('registry_refused', `The registry refused a request (status ${status}).`, { path, details })
}

const unavailable = (details: { status?: number }, cause?: unknown): ThreadlogError =>
  retryLater('registry_unavailable', 'The schema registry did not answer as it should.', {
    path: 'registry',
    hint: 'Check its address, and that it is up.',
    details,
    cause,
  })

const noRegistry = (): ThreadlogError =>
  reject('registry_invalid', 'No schema registry answers there.', {
    path: 'registry',
    expected: "a registry with Confluent's protocol",
    hint: 'Some serve it under a path: Apicurio under /apis/ccompat/v7.',
  })
