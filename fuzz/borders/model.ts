import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { canonicalJson, type JsonValue, MAX_DOCUMENT_DEPTH, parseJson } from '../../src/base/index.ts'
import { type Agent, defineAgent, openThreadlog, type Threadlog } from '../../src/index.ts'
import { parseMessage, type ResponseMessage, requestMessage, userPromptPart } from '../../src/messages/index.ts'
import { type ModelOutcome, scriptedModel, streamResponse, toModelMessages } from '../../src/models/index.ts'
import { accepted, type Border, type Outcome, promise, type Rig, refused } from '../kit/border.ts'
import { assertClean, codeOf, nameOf } from '../kit/marker.ts'
import { shorterLists, simplerValues } from '../kit/minimise.ts'
import { tools } from '../kit/shop.ts'
import { assertVerifies } from '../kit/verify.ts'
import { failure, live, type ModelCase, modelCase, type PartJson, type Said } from './model-parts.ts'

/** Streams of models, asked by streamResponse and by whole runs on a log in memory. */
export const model: Border<ModelCase> = {
  name: 'model',
  about: 'model streams: parts in any order and of any type, failures in every place, silence, streams without an end',
  limitMs: 6_000,
  renewAfter: 500,
  settleAfter: 250,
  open: async () => new ModelRig(await openThreadlog({ application: 'fuzz' })),
  generate: modelCase,
  *simpler(input) {
    if (input.run) yield { ...input, run: false }
    const { said: _, ...rest } = input
    for (const parts of shorterLists(input.parts)) yield { ...rest, parts }
    for (const [i, part] of input.parts.entries())
      for (const simple of simplerValues(part)) yield { ...rest, parts: input.parts.with(i, simple as PartJson) }
  },
}

const NOW = '2026-01-01T00:00:00Z'
const PROMPT = [requestMessage({ parts: [userPromptPart({ content: 'go', timestamp: NOW })], timestamp: NOW })]

class ModelRig implements Rig<ModelCase> {
  readonly #threads: Threadlog
  #runs = 0

  constructor(threads: Threadlog) {
    this.#threads = threads
  }

  try(input: ModelCase): Promise<Outcome> {
    return input.run ? this.#run(input) : this.#ask(input)
  }

  async #ask(input: ModelCase): Promise<Outcome> {
    const signal = signalOf(input)
    const outcome = await streamResponse({
      model: modelOf(input),
      messages: PROMPT,
      tools: [],
      now: () => NOW,
      ...(signal && { signal }),
    })
    checkOutcome(outcome, input.said)
    if (outcome.kind === 'response') return accepted(outcome.message.state)
    return refused(outcome.kind === 'failed' ? `${outcome.code} ${outcome.details.error_type}` : outcome.kind)
  }

  async #run(input: ModelCase): Promise<Outcome> {
    const agent = agentOf(modelOf(input))
    const thread = `thread_${this.#runs++}`
    const signal = signalOf(input)
    let status: string
    try {
      const result = await this.#threads.run(agent, { thread, input: 'go', toolErrors: 'return', ...(signal && { signal }) })
      if (result.failure) assertClean(JSON.stringify(result.failure), 'the failure of a run')
      status = result.status
    } catch (error) {
      status = codeOf(error, 'run')
      promise(status === 'aborted', 'uncoded', `a run was refused with ${status}`)
    }
    await this.#assertSilent(thread)
    if (status === 'failed' || status === 'cancelled') await this.#goesOn(thread)
    return status === 'completed' || status === 'suspended' ? accepted(`run ${status}`) : refused(`run ${status}`)
  }

  /** Failures in the log say nothing of what the model said. */
  async #assertSilent(thread: string): Promise<void> {
    for await (const { event } of this.#threads.thread(thread).events())
      if (event?.type.startsWith('model.failed/') || event?.type === 'run.failed/1')
        assertClean(JSON.stringify(event.data), `the event ${event.type}`)
  }

  /** Whatever a model has left behind, another one can go on from it. */
  async #goesOn(thread: string): Promise<void> {
    const next = agentOf(scriptedModel(() => ({ parts: [{ text: 'well' }] })))
    let status: string
    try {
      status = (await this.#threads.run(next, { thread, input: 'and now?' })).status
    } catch (error) {
      status = codeOf(error, 'the run after it')
    }
    promise(status === 'completed', 'damage', `after a broken stream the next run is ${status}`)
  }

  settle = async () => {
    if (this.#runs > 0) await assertVerifies(this.#threads.backend)
  }

  close = () => this.#threads.close()
}

const agentOf = (used: LanguageModelV4): Agent => defineAgent({ name: 'fuzzed', revision: '1', model: used, tools })

function signalOf({ abortMs }: ModelCase): AbortSignal | undefined {
  if (abortMs === undefined) return undefined
  const stop = new AbortController()
  setTimeout(() => stop.abort(), abortMs)
  return stop.signal
}

function modelOf(input: ModelCase): LanguageModelV4 {
  let asked = 0
  return {
    specificationVersion: 'v4',
    provider: 'raw.chat',
    modelId: 'raw-1',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream() {
      // What a run asks for after the first answer is a plain one.
      if (asked++ > 0 && input.run)
        return Promise.resolve({ stream: streamOf({ ...input, open: 'pull', parts: PLAIN, after: 'close' }) })
      return opened(input)
    },
  }
}

const PLAIN: PartJson[] = [
  { type: 'text-start', id: 'x' },
  { type: 'text-delta', id: 'x', delta: 'fine' },
  { type: 'text-end', id: 'x' },
  { type: 'finish', finishReason: { unified: 'stop' }, usage: {} },
]

type Opened = ReturnType<LanguageModelV4['doStream']>

function opened(input: ModelCase): Opened {
  switch (input.open) {
    case 'throws':
      throw failure(input.failure)
    case 'rejects':
      return Promise.reject(failure(input.failure))
    case 'never':
      return new Promise(() => {})
    case 'undefined':
      return undefined as never
    case 'nothing':
      return Promise.resolve({} as never)
    case 'odd-reader':
      return Promise.resolve({
        stream: { getReader: () => ({ read: () => failure(input.failure), cancel: () => undefined }) } as never,
      })
    default: {
      const stream = streamOf(input)
      if (input.open === 'locked') stream.getReader()
      return Promise.resolve({ stream })
    }
  }
}

function streamOf({ parts, after, failure: which, open }: ModelCase): ReadableStream<LanguageModelV4StreamPart> {
  const values = parts.map((part) => live(part) as LanguageModelV4StreamPart)
  let at = 0
  const next = (controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>): boolean => {
    if (after === 'forever' && at === values.length) at = 0
    if (at < values.length) controller.enqueue(values[at++] as LanguageModelV4StreamPart)
    else if (after === 'close') controller.close()
    else if (after === 'fail') controller.error(failure(which))
    else return false
    return at < values.length || after === 'forever'
  }
  if (open === 'push' && after !== 'forever')
    return new ReadableStream({
      start(controller) {
        while (next(controller));
        if (after !== 'hang' && values.length > 0) next(controller)
      },
    })
  return new ReadableStream(
    { pull: (controller) => void (next(controller) || (after === 'hang' && new Promise(() => {}))) },
    { highWaterMark: 0 },
  )
}

function checkOutcome(outcome: ModelOutcome, said: Said | undefined): void {
  if (outcome.kind === 'failed') {
    const { partial: _, ...told } = outcome
    assertClean(JSON.stringify(told), 'a failed request')
  }
  const message = outcome.kind === 'response' ? outcome.message : outcome.partial
  if (message) checkMessage(message)
  if (!said) return
  promise(
    outcome.kind === 'response',
    'silent',
    `a lawful stream came out as ${outcome.kind}`,
    JSON.stringify(outcome).slice(0, 300),
  )
  const texts = outcome.message.parts.flatMap((part) => (part.part_kind === 'text' ? [part.content] : []))
  promise(JSON.stringify(texts) === JSON.stringify(said.texts), 'silent', 'the texts of a response are not those of its stream')
  const calls = outcome.message.parts.flatMap((part) =>
    part.part_kind === 'tool-call' ? [[part.tool_call_id, part.tool_name, part.args]] : [],
  )
  promise(JSON.stringify(calls) === JSON.stringify(said.calls), 'silent', 'the calls of a response are not those of its stream')
}

/** A response can be stored, read back the same, and shown to a model. */
function checkMessage(message: ResponseMessage): void {
  let stored: JsonValue
  try {
    stored = parseJson(canonicalJson(message as unknown as JsonValue), { maxDepth: MAX_DOCUMENT_DEPTH - 16 })
  } catch (error) {
    promise(false, 'silent', `a response that cannot be stored: ${nameOf(error)}`)
  }
  let again: unknown
  try {
    again = parseMessage(stored, { now: NOW })
  } catch (error) {
    promise(false, 'silent', `a response that cannot be read back: ${nameOf(error)}`, (error as { path?: string }).path)
  }
  promise(canonicalJson(again as JsonValue) === canonicalJson(stored), 'silent', 'a response is read back as another')
  try {
    toModelMessages([...PROMPT, message], { provider: 'raw' })
  } catch (error) {
    promise(false, 'crash', `a response makes no prompt: ${nameOf(error)}`)
  }
}
