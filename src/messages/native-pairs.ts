import type { BuiltinToolCallPart, BuiltinToolReturnPart, ResponsePart } from './types.ts'

type Native = BuiltinToolCallPart | BuiltinToolReturnPart
const isNative = (part: ResponsePart): part is Native =>
  part.part_kind === 'builtin-tool-call' || part.part_kind === 'builtin-tool-return'

/**
 * The parts of a cut response without provider-executed calls that are not whole: unless all of them form strict pairs (unique id, one
 * call, then one return of the same name), all of them go. A native result is never invented (state spec §5.2 B).
 */
export function dropBrokenNativePairs(parts: ResponsePart[]): ResponsePart[] {
  const open = new Map<string, string>()
  const seen = new Set<string>()
  for (const part of parts) {
    if (!isNative(part)) continue
    if (part.part_kind === 'builtin-tool-call') {
      if (seen.has(part.tool_call_id)) return parts.filter((p) => !isNative(p))
      seen.add(part.tool_call_id)
      open.set(part.tool_call_id, part.tool_name)
    } else if (open.get(part.tool_call_id) !== part.tool_name) return parts.filter((p) => !isNative(p))
    else open.delete(part.tool_call_id)
  }
  return open.size === 0 ? parts : parts.filter((p) => !isNative(p))
}
