import { isJsonObject, isThreadlogError, type JsonValue, toJson } from '../../base/index.ts'
import { TOOL_CONTENT } from '../../messages/index.ts'
import { type ToolReturn, toolReturn } from './outcomes.ts'

const ITEM = { display: false, source_id: 'a13n.tool', media: false }

/**
 * A wrapper's extra content as it is kept: behind the value in the return itself, with a note on each item in its metadata (settled list A6).
 * Cache markers are no content and stay apart.
 * @throws what `refuse` makes, for content that is no JSON
 */
export function lowered(wrapper: ToolReturn, refuse: (message: string) => Error): ToolReturn {
  const { returnValue, content, metadata } = wrapper
  if (content === undefined) return wrapper
  const all = itemsOf(content, refuse)
  const items = all.filter((item) => !isCachePoint(item))
  const markers = all.length > items.length ? { content: all.filter(isCachePoint) } : {}
  if (items.length === 0) return toolReturn({ returnValue, ...markers, ...(metadata === undefined ? {} : { metadata }) })
  const notes = items.map((item) => ({ ...ITEM, media: isJsonObject(item) && item['kind'] !== 'text-content' }))
  const own = isJsonObject(metadata) ? metadata : metadata === undefined ? {} : { value: metadata as JsonValue }
  return toolReturn({
    returnValue: [returnValue, ...items],
    ...markers,
    metadata: { ...own, [TOOL_CONTENT]: { result_index: 0, items: notes } },
  })
}

const isCachePoint = (item: JsonValue): boolean => isJsonObject(item) && item['kind'] === 'cache-point'

function itemsOf(content: unknown, refuse: (message: string) => Error): JsonValue[] {
  try {
    const json = toJson(content)
    return json === null ? [] : Array.isArray(json) ? json : [json]
  } catch (error) {
    if (isThreadlogError(error, 'json_invalid')) throw refuse('Extra content is not JSON.')
    throw error
  }
}
