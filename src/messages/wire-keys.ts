/**
 * Every key of another project's wire format that this project reads or writes, once (design §8). A key changes here or nowhere:
 * stored threads carry them.
 */

/** Metadata of a tool return: extra content that was lowered into the return, `{result_index, items: [...]}`. */
export const TOOL_CONTENT = 'a13n.tool-content'
/** Metadata of a tool return: `"preserve"` exempts it from the cold-start filter. */
export const COLD_START = 'a13n.cold-start'
/** Vendor metadata of a binary item whose data lives in a content store: `{key, digest, size}`. */
export const STORED_CONTENT = 'a13n.stored'
/** Metadata of a deferred approval: what the approver is shown. */
export const APPROVAL_PRESENTATION = 'a13n.harness.approval-presentation'
/** Metadata of a deferred request: the function identity it was made for. */
export const DEFERRED_FUNCTION_ID = 'a13n.harness.deferred-function-id'
/** Metadata of a tool return: which policy decided the call. */
export const INVOCATION_POLICY = 'a13n.harness.invocation-policy'
/** Metadata of messages: content bookkeeping of the other library; removed before comparing. */
export const MESSAGE_CONTENT = 'a13n.content'
/** Metadata of messages: usage bookkeeping of the other library; removed before comparing. */
export const MESSAGE_USAGE = 'a13n_usage'
/** Metadata of user prompts: the id of a steering input. */
export const STEERING_INPUT = 'a13n.steering-input'
/** Metadata of a tool return that closes a dangling call of an older response: `true`. */
export const SYNTHESIZED_TOOL_RETURN = 'pydantic_ai_synthesized_tool_return'

/** Namespaces of `agent_context_state.entries`. */
export const NAMESPACES = {
  /** Ours: usage of the thread, by response. */
  threadlogUsage: 'threadlog.usage',
  /** Theirs: opaque to us, carried through. */
  usage: 'a13n.usage',
  steering: 'a13n.steering',
  subagents: 'a13n.subagents',
  reviewHistory: 'a13n.tool-execution-boundary.review-history',
} as const

/** Our own provider namespace in model prompts: marks that let a prompt be read back as the messages it was made of. */
export const OPTIONS_NAMESPACE = 'threadlog'
/** In `provider_details`: metadata of further providers, `{provider: {...}}`, when a part came with more than one. */
export const OTHER_METADATA = 'threadlog.other-metadata'
/** In `provider_details` of an empty text part: model content that has no part kind of its own, as it came. */
export const CUSTOM_CONTENT = 'threadlog.custom'
/** In `provider_details` of a file part: true if the file belongs to the reasoning. */
export const REASONING_FILE = 'threadlog.reasoning'
/** Key around arguments that do not parse, so that they can be shown to a model: `{INVALID_JSON: text}`. */
export const INVALID_JSON = 'INVALID_JSON'
