import { isJsonObject, type JsonObject } from '../base/index.ts'
import { callId } from './call-id.ts'
import { binary, returnContent } from './content.ts'
import { outcome, speech } from './request-parts.ts'
import {
  byKind,
  constant,
  integer,
  invalid,
  json,
  jsonObject,
  list,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  required,
  string,
  timestampOrNow,
} from './shape.ts'
import { withToolKind } from './tool-kinds.ts'
import type {
  BuiltinToolCallPart,
  BuiltinToolReturnPart,
  Citation,
  CompactionPart,
  DocumentSource,
  FilePart,
  ResponsePart,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  WebSource,
} from './types.ts'

/** Fields most response parts share. */
const id = { id: orNull(string) }
const provider = { provider_name: orNull(string), provider_details: orNull(jsonObject) }

const excerpts = { read: list(string), otherwise: () => [] as string[] }
const webSource = object<WebSource>({ url: required(string), title: orNull(string), excerpts, kind: constant('web') })
const documentSource = object<DocumentSource>({
  document_id: orNull(string),
  title: orNull(string),
  excerpts,
  kind: constant('document'),
})
const citation = object<Citation>({
  sources: required(list(byKind<WebSource | DocumentSource>('kind', { web: webSource, document: documentSource }))),
  anchor: orNull(
    object<NonNullable<Citation['anchor']>>({
      start: required(integer),
      end: required(integer),
      kind: required(oneOf('content', 'marker')),
    }),
  ),
})

export const text = object<TextPart>({
  content: required(string),
  ...id,
  ...provider,
  citations: orNull(list(citation)),
  part_kind: constant('text'),
})

export const thinking = object<ThinkingPart>({
  content: required(string),
  ...id,
  signature: orNull(string),
  ...provider,
  part_kind: constant('thinking'),
})

const args: Reader<string | JsonObject> = (value, at) => {
  if (typeof value !== 'string' && !isJsonObject(value)) throw invalid(at, 'JSON text, an object or null')
  return value
}
const call = {
  tool_name: required(string),
  args: orNull(args),
  tool_call_id: callId,
  tool_kind: orNull(string),
  ...id,
  ...provider,
}

export const toolCall = withToolKind('args', object<ToolCallPart>({ ...call, part_kind: constant('tool-call') }))
export const builtinToolCall = withToolKind(
  'args',
  object<BuiltinToolCallPart>({ ...call, part_kind: constant('builtin-tool-call') }),
)
export const builtinToolReturn = withToolKind(
  'content',
  object<BuiltinToolReturnPart>({
    tool_name: required(string),
    content: required(returnContent),
    tool_call_id: callId,
    tool_kind: orNull(string),
    metadata: optional(json, null),
    timestamp: timestampOrNow,
    outcome: optional(outcome, 'success'),
    ...provider,
    part_kind: constant('builtin-tool-return'),
  }),
)

const compaction = object<CompactionPart>({ content: orNull(string), ...id, ...provider, part_kind: constant('compaction') })
export const file = object<FilePart>({ content: required(binary), ...id, ...provider, part_kind: constant('file') })

export const responsePart = byKind<ResponsePart>('part_kind', {
  text,
  thinking,
  'tool-call': toolCall,
  'builtin-tool-call': builtinToolCall,
  'builtin-tool-return': builtinToolReturn,
  compaction,
  file,
  speech: speech('assistant'),
})
