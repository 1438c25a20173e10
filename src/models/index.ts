/** AI SDK models and our messages: both directions, one streamed request, and a model without a network. Published as `./ai-sdk`. */
export type { Delta } from './assembler.ts'
export { describeFailure, type Failure } from './failure.ts'
export { fromModelMessages } from './from-prompt.ts'
export { type ScriptEntry, ScriptedDisconnect, type ScriptedOptions, type ScriptPart } from './script.ts'
export { RECORDED_MODEL, type Script, type ScriptedModel, scriptedModel } from './scripted.ts'
export { type ModelOutcome, type ModelSettings, type StreamRequest, streamResponse, type ToolSpec } from './stream.ts'
export { type PromptOptions, toModelMessages } from './to-prompt.ts'
export { toUsage } from './usage.ts'
