/**
 * Every key of another project's wire format that this project reads or writes, once (design §8). A key changes here or nowhere:
 * stored threads carry them.
 */

/** Metadata of a deferred approval: what the approver is shown. */
export const APPROVAL_PRESENTATION = 'a13n.harness.approval-presentation'

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
