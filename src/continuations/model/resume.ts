import { exactKeys, invalidArgument, matching } from './arguments.ts'

/** Hosts whose native suspension an artifact can name. */
export const FRAMEWORKS = ['adk', 'langgraph'] as const
export type Framework = (typeof FRAMEWORKS)[number]

const FORM = '[A-Za-z0-9][A-Za-z0-9._:/+-]'
const identity = (limit: number) =>
  matching(new RegExp(`^${FORM}{0,${limit - 1}}$`), `1 to ${limit} of letters, digits, . _ : / + -, the first a letter or digit`)
const nativeId = identity(2048)
const shortId = identity(256)

const KEYS = ['framework', 'native_invocation_id', 'tool_call_id', 'tool_name', 'version'] as const
type Wire = Record<(typeof KEYS)[number], string>

/** Where a foreign host goes on: its framework, its invocation and the tool call that waits (continuation spec §1.5). Equal by value. */
export class ResumeArtifact {
  readonly framework: Framework
  readonly nativeInvocationId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly version: string

  /** @throws ThreadlogError `invalid_argument` */
  constructor(o: {
    framework: Framework
    nativeInvocationId: string
    toolCallId: string
    toolName: string
    version?: string
  }) {
    if (!FRAMEWORKS.includes(o.framework)) throw invalidArgument('framework', FRAMEWORKS.join(' or '))
    this.framework = o.framework
    this.nativeInvocationId = nativeId(o.nativeInvocationId, 'nativeInvocationId')
    this.toolCallId = shortId(o.toolCallId, 'toolCallId')
    this.toolName = shortId(o.toolName, 'toolName')
    const { version = 'harnest-continuation/v1' } = o
    this.version = shortId(version, 'version')
    Object.freeze(this)
  }

  /** Reads the persisted form: exactly its five keys. @throws ThreadlogError `invalid_argument` */
  static parse(value: unknown): ResumeArtifact {
    const wire = exactKeys(value, KEYS, 'resume') as Wire
    return new ResumeArtifact({
      framework: wire.framework as Framework,
      nativeInvocationId: wire.native_invocation_id,
      toolCallId: wire.tool_call_id,
      toolName: wire.tool_name,
      version: wire.version,
    })
  }

  equals(other: ResumeArtifact): boolean {
    const [a, b] = [this.toJSON(), other.toJSON()]
    return KEYS.every((key) => a[key] === b[key])
  }

  toJSON(): Wire {
    return {
      framework: this.framework,
      native_invocation_id: this.nativeInvocationId,
      tool_call_id: this.toolCallId,
      tool_name: this.toolName,
      version: this.version,
    }
  }
}
