import type { Sending } from '../kit/http-wire.ts'
import { bytesOf, strangeText } from '../kit/json-text.ts'
import { MARKER } from '../kit/marker.ts'
import type { Random } from '../kit/random.ts'
import { readStrict, textOf, writeSorted } from '../kit/strict-json.ts'
import { resultBytes } from './result-text.ts'

export const TOKEN = 'token-of-the-fuzzer'

/** One request, before it becomes bytes. */
export interface HttpRequest {
  method: string
  path: string
  headers: [string, string][]
  /** One character a byte. */
  body: string
  framing: 'length' | 'chunked'
  authorized: boolean
  /** True when the record in it is judged. */
  judged: boolean
  /** How the record stands in the body. */
  form: 'plain' | 'binary' | 'structured' | 'base64'
  /** What names the submission, if anything does. */
  id?: string
}

export interface HttpCase {
  requests: HttpRequest[]
  /** False when the bytes were broken or cut on the way: then nothing may be taken. */
  whole: boolean
  /** Where the bytes are cut into pieces, as parts of a thousand. */
  cuts: number[]
  broken?: { at: number; with: string; after: Sending['after'] }
}

export function httpCase(random: Random): HttpCase {
  const requests = random.list(1, random.once(6) ? 4 : 1, () => request(random))
  const cuts = random.once(3) ? random.list(1, 6, () => random.below(1_000)).sort((a, b) => a - b) : []
  if (!random.once(4)) return { requests, whole: true, cuts }
  const broken = { at: random.below(1_000), with: damage(random), after: random.pick(['end', 'break', 'wait'] as const) }
  return { requests: requests.slice(0, 1), whole: false, cuts, broken }
}

/** What takes the place of the rest of a request from some byte on: nothing, mostly. */
const damage = (random: Random): string =>
  random.once(2) ? '' : random.pick(['\r\n', '\x00\x00', 'zz\r\n', '\r\n\r\n', `${MARKER}\r\n\r\n`])

function request(random: Random): HttpRequest {
  const form = random.pick(['plain', 'plain', 'plain', 'binary', 'structured', 'base64'] as const)
  const authorized = !random.once(15)
  const odd = random.once(20)
  const method = odd ? random.pick(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) : 'POST'
  const path = random.once(25)
    ? random.pick(['/', '/results/', '/Results', '/results/x', `/${MARKER}`, '/%00', '/..%2fresults'])
    : '/results'
  const headers: [string, string][] = [['host', 'localhost']]
  if (authorized) headers.push(['authorization', `Bearer ${TOKEN}`])
  else if (random.once(2))
    headers.push([
      'authorization',
      random.pick(['Bearer wrong', `Basic ${TOKEN}`, 'Bearer ', `Bearer ${TOKEN}x`, `bearer  ${TOKEN}`]),
    ])
  const judged = authorized && method === 'POST' && path === '/results'
  const made: HttpRequest = {
    method,
    path,
    headers,
    body: '',
    framing: random.pick(['length', 'chunked']),
    authorized,
    judged,
    form,
  }
  fill(random, made)
  for (const extra of random.list(0, 2, () => extraHeader(random))) headers.push(extra)
  return made
}

function fill(random: Random, made: HttpRequest): void {
  const record = resultBytes(random)
  const id = `${random.below(40)}`
  const source = random.pick(['/bank', 'urn:x', ''])
  if (made.form === 'plain' || made.form === 'binary') {
    made.body = record
    if (!random.once(4))
      made.headers.push([
        'content-type',
        random.pick(['application/json', 'application/json; charset=utf-8', 'text/plain', 'application/avro', 'x']),
      ])
    if (made.form === 'plain') {
      if (random.once(3)) made.headers.push(['idempotency-key', (made.id = `key-${id}`)])
      return
    }
    made.headers.push(['ce-specversion', '1.0'], ['ce-type', 'done'], ['ce-source', source], ['ce-id', id])
    made.id = `${source}#${id}`
    return
  }
  made.headers.push([
    'content-type',
    random.pick(['application/cloudevents+json', 'application/cloudevents+json; charset=utf-8', 'Application/CloudEvents+JSON']),
  ])
  made.body = made.form === 'base64' ? base64Event(record, source, id) : structuredEvent(random, record, source, id)
  made.id = `${source}#${id}`
}

const base64Event = (record: string, source: string, id: string): string =>
  JSON.stringify({ specversion: '1.0', type: 'done', source, id, data_base64: `@@${record}@@` })

/** `data` is JSON as it stands; of what is no JSON the event is none either. */
const structuredEvent = (random: Random, record: string, source: string, id: string): string => {
  const more = random.once(4)
    ? `,"${random.pick(['subject', 'time', 'ext1'])}":${JSON.stringify(strangeText(random)).replace(/[^ -~]/g, '?')}`
    : ''
  return `{"specversion":"1.0","type":"done","source":${JSON.stringify(source)},"id":"${id}"${more},"data":${record}}`
}

const extraHeader = (random: Random): [string, string] =>
  random.pick<[string, string]>([
    ['accept', '*/*'],
    ['x-forwarded-for', MARKER],
    ['cookie', `a=${MARKER}`],
    ['accept-encoding', 'gzip'],
    ['x-long', 'x'.repeat(random.size(4_000))],
    ['user-agent', MARKER],
    ['if-none-match', '*'],
    ['origin', 'http://evil.example'],
  ])

/** The bytes of a case, in pieces. */
export function wireOf(input: HttpCase, text: (part: string) => string): Sending {
  let bytes = input.requests.map((each) => requestBytes(each, text)).join('')
  const { broken } = input
  if (broken) bytes = bytes.slice(0, Math.min(bytes.length - 1, Math.floor((bytes.length * broken.at) / 1_000))) + broken.with
  const at = [0, ...input.cuts.map((cut) => Math.floor((bytes.length * cut) / 1_000)), bytes.length]
  return { pieces: at.slice(1).map((end, i) => bytes.slice(at[i], end)), after: broken?.after ?? 'wait' }
}

function requestBytes(request: HttpRequest, text: (part: string) => string): string {
  const body = bodyOf(request, text)
  const headers = [...request.headers]
  headers.push(request.framing === 'length' ? ['content-length', String(body.length)] : ['transfer-encoding', 'chunked'])
  const head = `${request.method} ${request.path} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
  return head + (request.framing === 'length' ? body : chunked(body))
}

function bodyOf({ form, body }: HttpRequest, text: (part: string) => string): string {
  if (form !== 'base64') return text(body)
  const event = JSON.parse(body) as { data_base64: string }
  const record = text(event.data_base64.slice(2, -2))
  return JSON.stringify({ ...event, data_base64: Buffer.from(record, 'latin1').toString('base64') })
}

function chunked(body: string): string {
  let out = ''
  for (let at = 0; at < body.length; ) {
    const size = Math.min(body.length - at, 1 + ((at * 7 + 13) % 4_096))
    out += `${size.toString(16)}\r\n${body.slice(at, at + size)}\r\n`
    at += size
  }
  return `${out}0\r\n\r\n`
}

/** The record a request carries and what names it, read by the rules of CloudEvents. */
export function recordOf(request: HttpRequest, text: (part: string) => string): { record: Uint8Array; id: string | undefined } {
  const body = bodyOf(request, text)
  if (request.form === 'plain' || request.form === 'binary') return { record: bytesOf(body), id: request.id }
  if (request.form === 'base64')
    return { record: Buffer.from((JSON.parse(body) as { data_base64: string }).data_base64, 'base64'), id: request.id }
  return structuredRecord(body, request.id)
}

function structuredRecord(body: string, id: string | undefined): { record: Uint8Array; id: string | undefined } {
  const bytes = bytesOf(body)
  const read = textOf(bytes)
  const event = read === undefined ? undefined : readStrict(read)
  if (!event || event.doubled || !(event.tree instanceof Map)) return { record: bytes, id: undefined }
  return { record: Buffer.from(writeSorted(event.tree.get('data') ?? null)), id }
}
