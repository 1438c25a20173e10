import { setTimeout as delay } from 'node:timers/promises'
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { reject } from '../base/index.ts'
import { finishReasonOf, type ScriptEntry, ScriptedDisconnect, type ScriptedOptions, streamPart, usageOf } from './script.ts'

/** What the model says at each request: a list in order, or a function of the prompt and the number of the request (from 0). */
export type Script =
  | readonly ScriptEntry[]
  | ((prompt: LanguageModelV4Prompt, callIndex: number) => ScriptEntry | Promise<ScriptEntry>)

/** A model without a network. `requests` are the options it was called with, in order; `prompts` the prompts among them. */
export interface ScriptedModel extends LanguageModelV4 {
  readonly requests: readonly LanguageModelV4CallOptions[]
  readonly prompts: readonly LanguageModelV4Prompt[]
}

/** Options under which a scripted model leaves the same traces in a history as the one of the recorded vectors. */
export const RECORDED_MODEL: ScriptedOptions = { modelId: 'scripted', provider: '', namespace: 'function', finishReason: 'other' }

/**
 * A model that follows a script, for tests and demos. Several threads may share one whose script is a function.
 * @throws ThreadlogError `script_exhausted` from a request beyond the script
 */
export function scriptedModel(script: Script, o: ScriptedOptions = {}): ScriptedModel {
  const requests: LanguageModelV4CallOptions[] = []
  const provider = o.provider ?? 'scripted'
  const namespace = o.namespace ?? (provider || 'scripted')

  const next = async (options: LanguageModelV4CallOptions): Promise<ScriptEntry> => {
    const index = requests.push(options) - 1
    const entry = typeof script === 'function' ? await script(options.prompt, index) : script[index]
    if (entry === undefined)
      throw reject('script_exhausted', `The script has no entry for request ${index + 1}.`, {
        hint: 'Add an entry, or find out why the model was asked again.',
      })
    options.abortSignal?.throwIfAborted()
    if (entry.fail_before) throw new ScriptedDisconnect()
    return entry
  }

  function play(entry: ScriptEntry, signal: AbortSignal | undefined): Step[] {
    const steps: Step[] = [{ type: 'stream-start', warnings: [] }]
    let end: LanguageModelV4StreamPart[] = []
    for (const [i, part] of entry.parts.entries()) {
      if (o.delayMs) steps.push(() => delay(o.delayMs, undefined, { signal }))
      const streamed = streamPart(part, String(i), namespace)
      steps.push(...end, ...streamed.begin)
      end = streamed.end
    }
    if (entry.then === 'disconnect') steps.push(() => Promise.reject(new ScriptedDisconnect()))
    if (entry.then === 'hang') steps.push(() => untilAborted(signal))
    steps.push(...end, { type: 'finish', usage: usageOf(entry), finishReason: finishReasonOf(entry, o) })
    return steps
  }

  return {
    specificationVersion: 'v4',
    provider,
    modelId: o.modelId ?? 'scripted',
    supportedUrls: {},
    requests,
    get prompts() {
      return requests.map((options) => options.prompt)
    },
    async doStream(options) {
      return { stream: toStream(play(await next(options), options.abortSignal)) }
    },
    async doGenerate(options) {
      const entry = await next(options)
      const parts: LanguageModelV4StreamPart[] = []
      for (const step of play(entry, options.abortSignal))
        if (typeof step === 'function') await step()
        else parts.push(step)
      return { content: toContent(parts), usage: usageOf(entry), finishReason: finishReasonOf(entry, o), warnings: [] }
    },
  }
}

const untilAborted = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, fail) => {
    const stop = () => fail(signal?.reason ?? new Error('aborted'))
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })

/** A part, or something that happens before the next one. */
type Step = LanguageModelV4StreamPart | (() => Promise<unknown>)

/** Pulled part by part: a queue would be lost when the stream breaks. Whoever cancels waits for no step: they settle with their signal. */
function toStream(steps: readonly Step[]): ReadableStream<LanguageModelV4StreamPart> {
  let at = 0
  const pull = (controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>): Promise<void> | void => {
    const step = steps[at++]
    if (step === undefined) controller.close()
    else if (typeof step === 'function') return step().then(() => pull(controller))
    else controller.enqueue(step)
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

function toContent(parts: LanguageModelV4StreamPart[]): LanguageModelV4Content[] {
  const content: LanguageModelV4Content[] = []
  for (const part of parts) {
    if (part.type === 'text-delta') content.push({ type: 'text', text: part.delta })
    else if (part.type === 'reasoning-delta')
      content.push({ type: 'reasoning', text: part.delta, providerMetadata: part.providerMetadata })
    else if (part.type === 'tool-call' || part.type === 'tool-result') content.push(part)
  }
  return content
}
