import {
  CONTINUE,
  DEFERRAL_UNAVAILABLE,
  INTERRUPTED_BEFORE_RESULT,
  PERMISSION_DENIED,
  PERMISSION_REASON,
  POLICY_DENIED,
  POLICY_REASON,
  UNKNOWN_RESULT,
} from '../../../../src/harness/index.ts'
import { DEFAULT_DENIAL } from '../../../../src/projections/index.ts'
import type { Any } from './values.ts'

// Normal forms (test/vectors/harness/README.md): volatile values pinned, our wording replaced by the tokens that stand for it.

const WORDING = new Map<string, string>([
  [UNKNOWN_RESULT, '<unknown-result>'],
  [INTERRUPTED_BEFORE_RESULT, '<interrupted-before-result>'],
  [DEFAULT_DENIAL, '<default-denial>'],
  [POLICY_DENIED, '<policy-denied>'],
  [PERMISSION_DENIED, '<permission-denied>'],
  [DEFERRAL_UNAVAILABLE, '<deferral-unavailable>'],
  [PERMISSION_REASON, '<reason:permission>'],
  [POLICY_REASON, '<reason:policy>'],
  [CONTINUE, '<continue>'],
])

/** A value with our wording replaced. */
export function tokens(value: Any): Any {
  if (typeof value === 'string') return WORDING.get(value) ?? value.replace(/\[… (\d+) characters removed …\]/g, '<cut:$1>')
  if (Array.isArray(value)) return value.map(tokens)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, tokens(item)]))
}

/** The token of a text whose cause tells it. */
function contentOf(part: Any): Any {
  const cause = part.retry?.cause
  const byCause = { validation_error: 1, unknown_tool: 1, unavailable_tool: 1, no_output: 1 }
  if (part.outcome === 'retried' && cause in byCause && !isGiven(part.content)) return `<${cause}>`
  if (part.part_kind === 'retry-feedback' && cause === 'no_output' && !isGiven(part.content)) return '<no_output>'
  if (typeof part.content === 'string' && part.content.startsWith('The question cannot be shown')) return '<invalid-question>'
  return tokens(part.content)
}

const isGiven = (content: Any): boolean => typeof content !== 'string' || content.startsWith('<')

function argsOf({ args }: Any): Any {
  if (args === null || args === undefined || args === '') return {}
  if (typeof args !== 'string') return args
  try {
    return JSON.parse(args)
  } catch {
    return { $unparsed: args }
  }
}

/** A history as it is compared first. */
export const historyForm = (messages: readonly Any[]): Any =>
  messages.map((message) => ({ role: message.kind, state: message.state, parts: message.parts.map(partForm) }))

function partForm(part: Any): Any {
  const { part_kind: kind, tool_call_id, tool_name } = part
  switch (kind) {
    case 'thinking':
      return { kind, content: part.content, signature: part.signature }
    case 'tool-call':
    case 'builtin-tool-call':
      return { kind, tool_call_id, tool_name, args: argsOf(part) }
    case 'tool-return':
    case 'builtin-tool-return': {
      const retry_cause = part.outcome === 'retried' ? part.retry?.cause : undefined
      return {
        ...{ kind, tool_call_id, tool_name, outcome: part.outcome, content: contentOf(part) },
        ...(part.metadata === null ? {} : { metadata: part.metadata }),
        ...(retry_cause === undefined ? {} : { retry_cause }),
      }
    }
    case 'retry-feedback':
      return { kind, content: contentOf(part), cause: part.retry.cause }
    default:
      return { kind, content: tokens(part.content ?? null) }
  }
}

const PINNED = '2026-01-01T00:00:00Z'
const OWN_METADATA = ['a13n_usage', 'a13n.content', 'a13n.steering-input']
const OWN_NAMESPACES = ['a13n.usage', 'a13n.steering', 'a13n.tool-execution-boundary.review-history', 'threadlog.usage']
const NO_USAGE = {
  ...{ input_tokens: 0, cache_write_tokens: 0, cache_write_1h_tokens: 0, cache_read_tokens: 0, output_tokens: 0 },
  ...{ output_reasoning_tokens: 0, input_audio_tokens: 0, cache_audio_read_tokens: 0, output_audio_tokens: 0 },
  ...{ audio_seconds: 0, details: {}, cost: null },
}

/** A state with its volatile values pinned. */
export function stateForm(state: Any, thread?: string): Any {
  const entries = Object.fromEntries(
    Object.entries(state.agent_context_state.entries).filter(([id]) => !OWN_NAMESPACES.includes(id)),
  )
  return {
    ...state,
    thread_id: thread ?? state.thread_id,
    agent_context_state: { entries },
    message_history: state.message_history.map(messageForm),
  }
}

function messageForm(message: Any): Any {
  const kept = Object.entries(message.metadata ?? {}).filter(([key]) => !OWN_METADATA.includes(key))
  return {
    ...message,
    timestamp: message.timestamp === null ? null : PINNED,
    ...{ run_id: null, conversation_id: null },
    metadata: kept.length > 0 ? Object.fromEntries(kept) : null,
    ...(message.kind === 'response' ? { usage: NO_USAGE } : {}),
    parts: message.parts.map((part: Any) => ({
      ...part,
      ...('timestamp' in part ? { timestamp: PINNED } : {}),
      ...('content' in part ? { content: contentOf(part) } : {}),
    })),
  }
}
