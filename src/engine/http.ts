import { randomUUID, timingSafeEqual } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import {
  isJsonObject,
  isThreadlogError,
  type JsonObject,
  parseJson,
  reject,
  sha256,
  systemIds,
  ThreadlogError,
} from '../base/index.ts'
import { apiSource, HUMAN_PROVIDER, MAX_RECORD_BYTES, type Receipt, type SubmitContext } from '../continuations/index.ts'

export interface HttpOptions {
  /** Default 0: any free port. */
  port?: number
  /** Default `127.0.0.1`. */
  host?: string
  /** Bearer token every request must carry. Default: `THREADLOG_TOKEN`, else one made at start; see `engine.http.token`. */
  token?: string
}

/** Where results are taken over HTTP. */
export interface HttpIntake {
  readonly url: string
  readonly token: string
  close(): Promise<void>
}

/** How long `close` waits for requests being answered. */
const CLOSE_MS = 1_000

/** Settles one record and publishes its receipt. */
export type SettleRecord = (record: Uint8Array, context: SubmitContext) => Promise<Receipt>

const STATUS: Partial<Record<Receipt['verdict'], 202 | 400 | 403 | 404 | 409 | 410 | 413 | 422 | 423 | 429>> = {
  unreadable: 400,
  forbidden: 403,
  unknown: 404,
  conflict: 409,
  'proposal-changed': 409,
  'schema-mismatch': 409,
  late: 410,
  cancelled: 410,
  expired: 410,
  abandoned: 410,
  'stale-branch': 410,
  'too-large': 413,
  invalid: 422,
  quarantined: 423,
  held: 202,
  'held-full': 429,
}

/**
 * `POST /results`: one result as plain JSON (the record of topic `results`) or as a CloudEvent 1.0, structured
 * (`application/cloudevents+json`) or binary (`ce-*` headers). The answer is the receipt; its status follows the verdict, and 200 means
 * accepted or duplicate. The CloudEvent's source and id, or the header `idempotency-key`, name the submission: sent again it gets the
 * verdict it got.
 * @throws ThreadlogError `http_unavailable` when the port cannot be had
 */
export async function serveHttp(o: HttpOptions, settle: SettleRecord): Promise<HttpIntake> {
  const token = o.token ?? process.env['THREADLOG_TOKEN'] ?? systemIds.token()
  const host = o.host ?? '127.0.0.1'
  const server = createAdaptorServer({ fetch: routes(token, settle).fetch })
  await new Promise<void>((resolve, refuse) => {
    server.once('error', (cause) => refuse(unavailable(host, o.port ?? 0, cause)))
    server.listen(o.port ?? 0, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((resolve) => {
      if (!('closeAllConnections' in server)) return void server.close(() => resolve())
      // A client that never ends its request must not hold us up.
      const late = setTimeout(() => server.closeAllConnections(), CLOSE_MS)
      server.close(() => {
        clearTimeout(late)
        resolve()
      })
      server.closeIdleConnections()
    })
  return { url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`, token, close }
}

const unavailable = (host: string, port: number, cause: unknown) =>
  new ThreadlogError('http_unavailable', {
    disposition: 'reject',
    message: 'The HTTP intake cannot listen there.',
    path: 'http.port',
    expected: 'a free port, or 0 for any',
    details: { host, port },
    cause,
  })

type App = Hono<{ Bindings: HttpBindings }>

function routes(token: string, settle: SettleRecord): App {
  const app: App = new Hono()
  const wanted = sha256(`Bearer ${token}`)
  app.use(async (c, next) => {
    const given = c.req.header('authorization') ?? ''
    if (!timingSafeEqual(sha256(given), wanted))
      return c.json(
        errorBody(reject('unauthorized', 'The request carries no valid token.', { expected: 'authorization: Bearer <token>' })),
        401,
      )
    return next()
  })
  app.post('/results', async (c) => {
    const { record, id } = recordIn(await bodyOf(c.env.incoming), (name) => c.req.header(name))
    const context: SubmitContext = {
      actor: { kind: 'provider', id: '', source: 'http' },
      source: apiSource('http', id ?? randomUUID()),
      authority: { allows: (provider) => provider !== HUMAN_PROVIDER },
    }
    const receipt = await settle(record, context)
    return c.json(receipt, STATUS[receipt.verdict] ?? 200)
  })
  app.notFound((c) => c.json(errorBody(reject('not_found', 'There is nothing here.', { expected: 'POST /results' })), 404))
  app.onError((error, c) => {
    const known = isThreadlogError(error)
      ? error
      : new ThreadlogError('unexpected', { disposition: 'retry', message: 'The request failed.' })
    return c.json(errorBody(known), known.disposition === 'retry' ? 503 : 500)
  })
  return app
}

/** Bytes read and thrown away of a body that is too large, so that its sender gets to see the answer. */
const DRAIN_BYTES = 32 * MAX_RECORD_BYTES
/** A CloudEvent around a record, escapes and base64 included. */
const ENVELOPE_FACTOR = 2

/**
 * The body, or enough of it to be judged too large. Read from the events of Node's own stream: a web stream or an iterator around it
 * costs more than the judging.
 */
function bodyOf(request: Readable): Promise<Uint8Array> {
  const kept: Uint8Array[] = []
  let size = 0
  return new Promise((resolve, fail) => {
    const end = () => resolve(kept.length === 1 ? (kept[0] as Uint8Array) : Buffer.concat(kept))
    request.on('data', (chunk: Uint8Array) => {
      if (size <= ENVELOPE_FACTOR * MAX_RECORD_BYTES) kept.push(chunk)
      size += chunk.byteLength
      if (size <= DRAIN_BYTES) return
      end()
      request.destroy()
    })
    request.on('end', end).on('error', fail)
  })
}

const errorBody = (error: ThreadlogError) => ({ error: error.toJSON() as JsonObject })

/** The result record in a request, and what names the submission. What is no CloudEvent is taken as it is: judging is not done here. */
function recordIn(
  body: Uint8Array,
  header: (name: string) => string | undefined,
): { record: Uint8Array; id: string | undefined } {
  // An empty name names nothing.
  const id = header('ce-id') || undefined
  if (id !== undefined) return { record: body, id: `${header('ce-source') ?? ''}#${id}` }
  const [mediaType = ''] = (header('content-type') ?? '').split(';')
  const event = mediaType.trim().toLowerCase() === 'application/cloudevents+json' ? cloudEvent(body) : undefined
  return event ?? { record: body, id: header('idempotency-key') || undefined }
}

/** A structured CloudEvent: its data, and what names it. Undefined for what is none. */
function cloudEvent(body: Uint8Array): { record: Uint8Array; id: string } | undefined {
  try {
    const event = parseJson(body)
    if (!isJsonObject(event)) return undefined
    const { id, source = '', data = null, data_base64: base64 } = event
    if (typeof id !== 'string' || id === '' || typeof source !== 'string') return undefined
    if (base64 === undefined || base64 === null) return { record: Buffer.from(JSON.stringify(data)), id: `${source}#${id}` }
    // Buffer skips what is no base64.
    const record = typeof base64 === 'string' && data === null ? Buffer.from(base64, 'base64') : undefined
    return record && record.toString('base64') === base64 ? { record, id: `${source}#${id}` } : undefined
  } catch {
    return undefined
  }
}
