import type { JsonValue } from '../base/index.ts'
import { inside, invalid, list, object, type Reader, required, string } from './shape.ts'

type Payload = { [kind: string]: Reader<JsonValue> }

const searchMatch = object<{ name: string }>({ name: required(string) })
const message = { read: string, otherwise: () => '', hideIf: '' }

/** What a part of a core tool kind may carry. Any other `tool_kind` carries what it likes. */
const PAYLOADS: { args: Payload; content: Payload } = {
  args: {
    'tool-search': object<{ queries: string[] }>({ queries: required(list(string)) }),
    'capability-load': object<{ id: string }>({ id: required(string) }),
  },
  content: {
    'tool-search': object<{ discovered_tools: { name: string }[]; message: string }>({
      discovered_tools: required(list(searchMatch)),
      message,
    }),
    'capability-load': object<{ instructions: string }>({ instructions: message }),
  },
}

interface Typed {
  tool_name: string
  tool_kind: string | null
  args?: string | { [key: string]: JsonValue } | null
  content?: JsonValue
  outcome?: string
}

/** Adds the check of core tool kinds to a part. Arguments that are text, and returns that are no success, are not checked. */
export function withToolKind<T extends Typed>(field: 'args' | 'content', read: Reader<T>): Reader<T> {
  return (value, at) => {
    const part = read(value, at)
    const kind = part.tool_kind
    if (kind === null || !Object.hasOwn(PAYLOADS[field], kind) || (part.outcome ?? 'success') !== 'success') return part
    if (kind === 'capability-load' && part.tool_name !== 'load_capability')
      throw invalid(inside(at, 'tool_name'), '"load_capability"')
    const payload = part[field] as JsonValue
    if (field === 'args' && (payload === null || typeof payload === 'string')) return part
    return { ...part, [field]: PAYLOADS[field][kind]!(payload, inside(at, field)) }
  }
}
