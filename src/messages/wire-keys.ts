/**
 * Every key of another project's wire format that this project reads or writes, once (design §8). A key changes here or nowhere:
 * stored threads carry them.
 */

/** Metadata of a deferred approval: what the approver is shown. */
export const APPROVAL_PRESENTATION = 'a13n.harness.approval-presentation'
/** Metadata of a deferred call of a function tool: the tool's stable identity. */
export const DEFERRED_FUNCTION_ID = 'a13n.harness.deferred-function-id'
/** Metadata of a tool: true if it may run again after a crash. */
export const RECOVERY_RETRY_SAFE = 'a13n.harness.recovery_retry_safe'
/** Metadata of a tool return: notes on the content items that stand behind its value. */
export const TOOL_CONTENT = 'a13n.tool-content'
/** Metadata of a tool return: `preserve` keeps it from being shortened at a cold start. */
export const COLD_START = 'a13n.cold-start'
/** Vendor metadata of content that a store keeps: its reference. */
export const STORED = 'a13n.stored'
/** Metadata of a return that stands in for a missing one of an older response. */
export const SYNTHESIZED_RETURN = 'pydantic_ai_synthesized_tool_return'
/** Capability namespace of inline children, and the version this package can fork. */
export const SUBAGENTS = 'a13n.subagents'
export const SUBAGENTS_VERSION = '2'

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
