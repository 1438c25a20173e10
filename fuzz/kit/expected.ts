import { createHash } from 'node:crypto'
import { expectedOfAvro } from './avro-record.ts'
import { readStrict, type Tree, textOf, writeSorted } from './strict-json.ts'

// What a result record is worth, said again from the wire contract without a line of src/.

/** A record as the contract reads it. */
export interface ExpectedSubmission {
  readonly verdict: 'submission'
  readonly application: string | undefined
  readonly provider: string
  readonly continuation: string | undefined
  readonly external: string | undefined
  readonly resultId: string | undefined
  readonly schema: string | undefined
  readonly proposal: string | undefined
  readonly outcome: { readonly result: Tree } | { readonly failure: { code: string; retryable: boolean } }
  readonly digest: string
}

export type Expected = ExpectedSubmission | { readonly verdict: 'unreadable' | 'too-large' | 'invalid' }

const FIELDS = new Set([
  'application_id',
  'provider',
  'external_id',
  'continuation_id',
  'result_id',
  'schema_id',
  'proposal_digest',
  'result',
  'failure',
])
const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const DIGITS = '0123456789'
const LETTERS = LOWER + LOWER.toUpperCase()

const consistsOf = (text: string, chars: string): boolean => [...text].every((char) => chars.includes(char))
const isName = (tree: Tree | undefined): tree is string =>
  typeof tree === 'string' &&
  tree.length <= 128 &&
  tree !== '' &&
  LOWER.includes(tree[0] ?? '') &&
  consistsOf(tree, `${LOWER}${DIGITS}_.-`)
const isSchemaId = (tree: Tree): boolean =>
  typeof tree === 'string' &&
  tree.length <= 256 &&
  tree !== '' &&
  `${LETTERS}${DIGITS}`.includes(tree[0] ?? '') &&
  consistsOf(tree, `${LETTERS}${DIGITS}_.:/+-`)
const isDigest = (tree: Tree): boolean => typeof tree === 'string' && tree.length === 64 && consistsOf(tree, `${DIGITS}abcdef`)

/** White space of the wire contract, by code point. */
const isSpace = (c: number): boolean =>
  (c >= 9 && c <= 13) ||
  (c >= 28 && c <= 32) ||
  c === 0x85 ||
  c === 0xa0 ||
  c === 0x1680 ||
  (c >= 0x2000 && c <= 0x200a) ||
  [0x2028, 0x2029, 0x202f, 0x205f, 0x3000].includes(c)
const isUsable = (limit: number) => (tree: Tree) =>
  typeof tree === 'string' &&
  Buffer.from(tree, 'utf8').toString('utf8') === tree &&
  [...tree].length <= limit &&
  [...tree].some((char) => !isSpace(char.codePointAt(0) ?? 0))

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** @param bytes one record as it arrives */
export function expectedOf(bytes: Uint8Array): Expected {
  if (bytes.length > 1_048_576) return { verdict: 'too-large' }
  if (bytes[0] === 0) return expectedOfAvro(bytes)
  const text = textOf(bytes)
  const read = text === undefined ? undefined : readStrict(text)
  // Which of two members of one name counts differs from reader to reader.
  if (!read || read.doubled) return { verdict: 'unreadable' }
  return read.tree instanceof Map ? expectedFields(read.tree) : { verdict: 'invalid' }
}

/** What the fields of a record are worth, however they were written. */
export function expectedFields(record: Map<string, Tree>): Expected {
  const invalid = { verdict: 'invalid' } as const
  const field = (name: string): Tree | undefined => record.get(name) ?? undefined
  const fits = (name: string, check: (tree: Tree) => boolean): boolean => field(name) === undefined || check(field(name) as Tree)
  const provider = field('provider')
  if ([...record.keys()].some((key) => !FIELDS.has(key)) || !isName(provider)) return invalid
  if (!['application_id', 'continuation_id', 'result_id'].every((name) => fits(name, isUsable(512)))) return invalid
  if (!fits('external_id', isUsable(1024)) || !fits('schema_id', isSchemaId) || !fits('proposal_digest', isDigest)) return invalid
  if ((field('external_id') === undefined) === (field('continuation_id') === undefined)) return invalid
  const outcome = outcomeOf(record)
  if (!outcome) return invalid
  if ('result' in outcome && Buffer.byteLength(writeSorted(outcome.result)) > 65_536) return { verdict: 'too-large' }
  const text = (name: string) => field(name) as string | undefined
  return {
    verdict: 'submission',
    application: text('application_id'),
    provider,
    continuation: text('continuation_id'),
    external: text('external_id'),
    resultId: text('result_id'),
    schema: text('schema_id'),
    proposal: text('proposal_digest'),
    outcome,
    digest: sha256(
      'result' in outcome
        ? `{"result":${writeSorted(outcome.result)}}`
        : `{"failure":{"code":${JSON.stringify(outcome.failure.code)},"retryable":${outcome.failure.retryable}}}`,
    ),
  }
}

function outcomeOf(record: Map<string, Tree>): ExpectedSubmission['outcome'] | undefined {
  const failure = record.get('failure')
  const result = record.get('result')
  if (failure === null || failure === undefined)
    return result === undefined || (result === null && failure === null) ? undefined : { result }
  if (!(failure instanceof Map) || (result !== null && result !== undefined)) return undefined
  const code = failure.get('code')
  const retryable = failure.get('retryable') ?? (failure.has('retryable') ? null : false)
  if (!isName(code) || typeof retryable !== 'boolean' || failure.size !== (failure.has('retryable') ? 2 : 1)) return undefined
  return { failure: { code, retryable } }
}
