import { readdirSync, readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { canonicalJson, isThreadlogError, type JsonValue, MAX_DOCUMENT_DEPTH, Payload, systemIds } from '../../src/base/index.ts'
import { encodeCommit, threadStream, ZERO_HASH } from '../../src/events/index.ts'
import { type LogBackend, openMemoryLog, type RecordedEvent } from '../../src/log/index.ts'
import { CUSTOM_CONTENT, HarnessState, INVALID_JSON, OTHER_METADATA, REASONING_FILE } from '../../src/messages/index.ts'
import { toModelMessages } from '../../src/models/index.ts'
import { foldStream, harnessState, indexProjectors } from '../../src/projections/index.ts'
import { history } from '../../test/messages/arbitraries.ts'
import { accepted, type Border, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { bytesOf, bytesText, changedBytes, changedText } from '../kit/json-text.ts'
import { codeOf, nameOf } from '../kit/marker.ts'
import { shorterTexts, simplerValues } from '../kit/minimise.ts'
import type { Random } from '../kit/random.ts'
import { readStrict, textOf, treeOf, writeSorted } from '../kit/strict-json.ts'
import { changedValue, strangeValue } from '../kit/values.ts'
import { assertVerifies } from '../kit/verify.ts'

/** A state as it comes in: a value, its text, or bytes (one character each). */
export type StateCase = { form: 'value'; value: unknown } | { form: 'text' | 'bytes'; text: string }

/** States of others, read by HarnessState.parse and imported into a log. */
export const state: Border<StateCase> = {
  name: 'state',
  about: 'HarnessState JSON: recorded states with parts replaced, removed, doubled, moved; as values, text and bytes',
  limitMs: 5_000,
  renewAfter: 2_000,
  settleAfter: 500,
  open: () => StateRig.open(),
  generate(random) {
    const seed = random.once(2) ? random.pick(rich()) : random.pick(seeds())
    const plants = random.once(3)
    const planted = plants ? withWireKeys(random, structuredClone(seed)) : seed
    const value = random.once(plants ? 2 : 20) ? planted : changedValue(random, planted)
    const form = random.pick(['value', 'value', 'text', 'bytes'] as const)
    if (form === 'value') return { form, value }
    const text = JSON.stringify(value)
    if (form === 'text') return { form, text: random.once(2) ? changedText(random, text) : text }
    return { form, text: changedBytes(random, bytesText(text)) }
  },
  *simpler(input) {
    if (input.form === 'value') for (const value of simplerValues(input.value)) yield { form: 'value', value }
    else for (const text of shorterTexts(input.text)) yield { ...input, text }
  },
}

const VECTORS = new URL('../../test/vectors/harness/', import.meta.url)
let found: unknown[] | undefined

/** Every state the vectors hold, good and bad. */
function seeds(): unknown[] {
  if (found) return found
  found = []
  for (const file of readdirSync(VECTORS)
    .filter((name) => name.endsWith('.json'))
    .sort())
    collect((JSON.parse(readFileSync(new URL(file, VECTORS), 'utf8')) as { vectors: unknown[] }).vectors, found)
  return found
}

let made: unknown[] | undefined

/** States with parts of every kind. */
const rich = (): unknown[] =>
  (made ??= fc.sample(history, { seed: 7, numRuns: 400 }).map((messages, i) => ({
    schema_version: '1',
    thread_id: `thread_${i}`,
    message_history: messages,
    future: { field: i },
  })))

const DETAILS = [CUSTOM_CONTENT, REASONING_FILE, OTHER_METADATA, INVALID_JSON, 'signature', 'threadlog'] as const
const FREE = ['provider_details', 'metadata', 'vendor_metadata', 'args', 'content', 'provider_name', 'retry', 'url'] as const

/** Free-form fields of some parts filled with keys that mean something to us. */
function withWireKeys(random: Random, seed: unknown): unknown {
  const { message_history: messages } = seed as { message_history: { parts?: Record<string, unknown>[] }[] }
  if (!Array.isArray(messages)) return seed
  const parts = messages.flatMap((message) => (Array.isArray(message?.parts) ? message.parts : []))
  for (let times = random.between(1, 3); times > 0 && parts.length > 0; times--) {
    const part = random.pick(parts)
    const inner = random.any<unknown>(
      () => strangeValue(random),
      () => ({
        type: random.pick(['custom', 'file', 'x']),
        kind: 'a.b',
        url: random.pick(['::', 'http://x', '', 5]),
        data: strangeValue(random),
      }),
      () => ({ [random.pick(DETAILS)]: strangeValue(random) }),
    )
    const field = random.once(2) ? 'provider_details' : random.pick(FREE)
    part[field] = random.once(4) ? inner : { [random.once(2) ? CUSTOM_CONTENT : random.pick(DETAILS)]: inner }
    if (part['part_kind'] === 'text' && random.once(2)) part['content'] = ''
  }
  return seed
}

function collect(value: unknown, into: unknown[]): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value) && 'message_history' in value) into.push(value)
  for (const item of Object.values(value)) collect(item, into)
}

const NOW = '2026-01-01T00:00:00Z'

class StateRig implements Rig<StateCase> {
  readonly #log: LogBackend
  #imported = 0

  private constructor(log: LogBackend) {
    this.#log = log
  }

  static async open(): Promise<StateRig> {
    const log = await openMemoryLog()
    await log.install(indexProjectors())
    return new StateRig(log)
  }

  async try(input: StateCase): Promise<Outcome> {
    const raw = input.form === 'value' ? input.value : input.form === 'text' ? input.text : bytesOf(input.text)
    let read: HarnessState
    try {
      read = HarnessState.parse(raw, { now: NOW })
    } catch (error) {
      return refused(codeOf(error, 'HarnessState.parse', true))
    } finally {
      assertUnpolluted()
    }
    checkKept(raw, read)
    checkStable(read)
    promptOf(read)
    await this.#import(read)
    return accepted()
  }

  /** The state as the first event of a thread: what it folds to is the state. */
  async #import(read: HarnessState): Promise<void> {
    const key = { application: 'fuzz', user: `u${this.#imported++}`, thread: read.threadId }
    const stream = threadStream(key)
    const origin = { kind: 'imported', state: Payload.of(read.toJSON()), parent: null } as const
    const data = { application_id: key.application, user_id: key.user, thread_id: key.thread, kind: 'harness', origin } as const
    const actor = { kind: 'api', id: '', source: 'fuzz' }
    const meta = { stream, base: 0, previous: ZERO_HASH, id: systemIds.commit(1_000_000), time: 1_000_000, actor }
    try {
      await this.#log.events.append(encodeCommit(meta, [{ type: 'thread.opened/1', data }]))
    } catch (error) {
      promise(isThreadlogError(error, 'commit_too_large'), 'crash', `an accepted state cannot be imported: ${nameOf(error)}`)
      return
    }
    const records: RecordedEvent[] = []
    for await (const batch of this.#log.events.read(stream)) records.push(...batch)
    const folded = foldStream(records)
    promise(folded.quarantine === undefined, 'damage', 'an accepted state quarantines its thread', folded.quarantine?.code)
    const back = canonicalJson(harnessState(folded.state).toJSON())
    promise(back === canonicalJson(read.toJSON()), 'silent', 'an imported state comes back changed')
  }

  settle = async () => {
    if (this.#imported > 0) await assertVerifies(this.#log)
  }
  close = () => this.#log.close()
}

/** Nothing of what the other library understands may be lost or read as something else. */
function checkKept(raw: unknown, read: HarnessState): void {
  const text = raw instanceof Uint8Array ? textOf(raw) : typeof raw === 'string' ? raw : undefined
  const strict = text === undefined ? undefined : readStrict(text, MAX_DOCUMENT_DEPTH)
  if (typeof raw === 'string' || raw instanceof Uint8Array)
    promise(strict !== undefined && !strict.doubled, 'silent', 'a text that is no JSON was taken')
  const tree = strict?.tree ?? treeOf(raw)
  promise(tree instanceof Map && tree.get('schema_version') === '1', 'silent', 'another schema version was taken')
  const id = tree.get('thread_id')
  promise(
    typeof id === 'string' && id === read.threadId && isHarnessId(id),
    'silent',
    'a thread id was taken that is none',
    String(id),
  )
  const messages = tree.get('message_history') ?? []
  const out = treeOf(read.toJSON()) as Map<string, unknown>
  promise(Array.isArray(messages) && messages.length === read.messageHistory.length, 'silent', 'the history has another length')
  const known = new Set(['schema_version', 'thread_id', 'agent_context_state', 'refs', 'message_history', 'environment_states'])
  for (const [key, value] of tree)
    if (!known.has(key))
      promise(writeSorted(out.get(key) as never) === writeSorted(value), 'silent', 'an unknown field was changed')
  for (const [i, message] of messages.entries()) {
    promise(message instanceof Map, 'silent', 'a message that is no object was taken')
    const ours = read.messageHistory[i]
    const parts = message.get('parts')
    promise(message.get('kind') === ours?.kind, 'silent', 'a message became one of another kind')
    promise(Array.isArray(parts) && parts.length === ours?.parts.length, 'silent', 'a message has another number of parts')
    for (const [j, part] of parts.entries()) {
      promise(part instanceof Map, 'silent', 'a part that is no object was taken')
      const [kind, content] = [part.get('part_kind'), part.get('content')]
      const own = ours?.parts[j] as { part_kind: string; content?: unknown }
      promise(kind === own.part_kind || kind === 'retry-prompt', 'silent', 'a part became one of another kind', `${kind}`)
      if (typeof content === 'string' && typeof own.content === 'string')
        promise(content === own.content, 'silent', 'the text of a part was changed')
    }
  }
}

function isHarnessId(id: string): boolean {
  const lower = (text: string) => [...text].every((char) => (char >= 'a' && char <= 'z') || (char >= '0' && char <= '9'))
  const [prefix = '', rest, ...more] = id.split('_')
  if (id.length <= 256 && rest !== undefined && rest !== '' && more.length === 0 && lower(prefix + rest))
    return prefix !== '' && prefix[0] !== undefined && prefix[0] >= 'a'
  return id.length === 39 && id.startsWith('thread-') && [...id.slice(7)].every((char) => '0123456789abcdef'.includes(char))
}

/** Written and read again it is the same, byte for byte. */
function checkStable(read: HarnessState): void {
  const text = read.toText()
  let again: HarnessState
  try {
    again = HarnessState.parse(text)
  } catch (error) {
    promise(
      false,
      'silent',
      `what was taken is not taken again: ${nameOf(error)}`,
      isThreadlogError(error) ? `${error.path} ${error.cause}` : '',
    )
  }
  promise(again.toText() === text, 'silent', 'a state is written otherwise when it was read twice')
  promise(isDeepStrictEqual(JSON.parse(text), jsonForm(read)), 'silent', 'text and value of a state differ')
}

const jsonForm = (read: HarnessState): unknown => JSON.parse(JSON.stringify(read.toJSON() as JsonValue))

/** A history that was taken can be shown to a model. */
function promptOf(read: HarnessState): void {
  try {
    toModelMessages(read.messageHistory, { provider: 'fuzz' })
  } catch (error) {
    promise(false, 'crash', `a history that was taken makes no prompt: ${nameOf(error)}`)
  }
}

function assertUnpolluted(): void {
  const plain: Record<string, unknown> = {}
  promise(plain['polluted'] === undefined && Object.keys(Object.prototype).length === 0, 'damage', 'a prototype was changed')
}
