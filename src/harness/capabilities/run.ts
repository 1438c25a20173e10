import { frozenCopy, type JsonValue, type Payload, reject } from '../../base/index.ts'
import type { EventDraft } from '../../events/index.ts'
import { type Message, parseMessage, type ResponseMessage } from '../../messages/index.ts'
import type { ThreadState } from '../../projections/index.ts'
import { integrity, unanswered } from '../history/index.ts'
import { HookFailure } from '../hook-failure.ts'
import type { Capability, CapabilityHooks, CapabilityState, HookCall, HookContext, HookOutcome } from './capability.ts'
import { CapabilityStates } from './states.ts'

export interface RunCapabilitiesOptions {
  capabilities: readonly Capability[]
  runId: string
  deps: unknown
  signal: AbortSignal
  /** ISO 8601 time of messages without one. */
  now: () => string
}

/** The capabilities of one attempt: their hooks, and their state between two commits. */
export class RunCapabilities {
  readonly #o: RunCapabilitiesOptions
  #states = new CapabilityStates()
  #threadId = ''
  /** Frozen copies of messages, and what they are copies of. */
  readonly #shown = new WeakMap<Message, Message>()
  readonly #origin = new WeakMap<Message, Message>()

  constructor(options: RunCapabilitiesOptions) {
    this.#o = options
  }

  /** Takes over what the thread holds; what other attempts wrote and did not commit is not in it. */
  load(state: ThreadState): void {
    this.#threadId = state.identity?.thread ?? ''
    const entries = [...state.capabilities].map(([id, { version, data }]) => [id, { version, data: data.value }])
    this.#states = new CapabilityStates(Object.fromEntries(entries))
  }

  /** For the bodies of tools. */
  get states(): CapabilityStates {
    return this.#states
  }

  /** True if requests are shown to somebody before they are sent. */
  get shapesRequests(): boolean {
    return this.#o.capabilities.some(({ beforeModel }) => beforeModel !== undefined)
  }

  /**
   * The history as the hooks want it; undefined if they leave it as it is. Unchanged messages are the given ones.
   * @throws HookFailure
   */
  async beforeModel(history: readonly Message[]): Promise<readonly Message[] | undefined> {
    let messages = history
    for (const capability of this.#o.capabilities) {
      if (!capability.beforeModel) continue
      try {
        const answer = await capability.beforeModel(messages.map(this.#show), this.#context(capability))
        if (answer !== undefined) messages = legal(answer.map(this.#read))
      } catch (cause) {
        throw new HookFailure(capability.name, 'beforeModel', cause)
      }
    }
    const same = messages.length === history.length && messages.every((message, i) => message === history[i])
    return same ? undefined : messages
  }

  afterModel(response: Payload): HookFailure | undefined {
    const message = () => frozenCopy(response.value) as unknown as ResponseMessage
    return this.#all('afterModel', (hook, context) => hook(message(), context))
  }

  /** What is done before a call begins; undefined if there is nothing. It throws HookFailure. */
  beforeTool(call: HookCall): (() => Promise<void>) | undefined {
    const hooked = this.#o.capabilities.filter(({ beforeTool }) => beforeTool !== undefined)
    if (hooked.length === 0) return undefined
    return async () => {
      for (const capability of hooked)
        try {
          await capability.beforeTool?.(frozenCopy(call), this.#context(capability))
        } catch (cause) {
          throw new HookFailure(capability.name, 'beforeTool', cause)
        }
    }
  }

  afterTool(call: HookCall, outcome: HookOutcome): HookFailure | undefined {
    return this.#all('afterTool', (hook, context) => hook(frozenCopy(call), frozenCopy(outcome), context))
  }

  /** The events of what was written and is not in the log. */
  drafts(): EventDraft[] {
    return this.#states.drafts()
  }

  /** Says that they are in it now. */
  accepted(drafts: readonly EventDraft[]): void {
    this.#states.accepted(drafts)
  }

  #all<H extends 'afterModel' | 'afterTool'>(
    hook: H,
    call: (hook: NonNullable<CapabilityHooks[H]>, context: HookContext) => unknown,
  ): HookFailure | undefined {
    for (const capability of this.#o.capabilities) {
      const it = capability[hook]
      if (it === undefined) continue
      try {
        const answer = call(it as NonNullable<CapabilityHooks[H]>, this.#context(capability))
        if (answer instanceof Promise) {
          answer.catch(() => {})
          throw new TypeError(`${hook} must not wait: what came before it is recorded in one piece with it.`)
        }
      } catch (cause) {
        return new HookFailure(capability.name, hook, cause)
      }
    }
    return undefined
  }

  #context(capability: Capability): HookContext {
    const { runId, deps, signal } = this.#o
    return { state: this.#stateOf(capability), runId, threadId: this.#threadId, deps, signal }
  }

  #stateOf({ name: id, state }: Capability): CapabilityState {
    const declared = () => {
      if (state) return { id, ...state }
      throw reject('capability_invalid', 'The capability declares no state.', {
        path: 'state',
        expected: 'a version and a schema',
      })
    }
    return {
      read: () => this.#states.read(declared()),
      write: (value) => this.#states.write({ ...declared(), value }),
      delete: () => this.#states.delete(declared().id),
    }
  }

  readonly #show = (message: Message): Message => {
    const known = this.#shown.get(message)
    if (known) return known
    const copy = frozenCopy(message)
    this.#shown.set(message, copy)
    this.#origin.set(copy, message)
    return copy
  }

  /** What a hook gave back: a message of the history as it stands there, or a new one, read like one from outside. */
  readonly #read = (message: Message, index: number): Message =>
    this.#origin.get(message) ?? parseMessage(message as unknown as JsonValue, { now: this.#o.now(), path: `$[${index}]` })
}

/** @throws ThreadlogError `history_illegal` */
function legal(messages: readonly Message[]): readonly Message[] {
  const isLegal = messages.at(-1)?.kind === 'request' && integrity(messages) === messages && everyCallAnswered(messages)
  if (isLegal) return messages
  throw reject('history_illegal', 'No model takes that history.', {
    path: 'beforeModel',
    expected: 'a list that ends with a request, in which each call is answered once, right behind its response',
  })
}

function everyCallAnswered(messages: readonly Message[]): boolean {
  return messages.every((message, at) => {
    if (message.kind !== 'response') return true
    const next = messages.findIndex(({ kind }, i) => i > at && kind === 'response')
    return unanswered(messages.slice(0, next < 0 ? undefined : next)).calls.length === 0
  })
}
