import { createHash, type Hash } from 'node:crypto'
import { type AppendList, sha256Hex } from '../base/index.ts'
import { aroundMessages } from './harness-state.ts'
import { messageBytes } from './messages.ts'
import type { HistoryEntry, ThreadState } from './state.ts'

/** A HarnessState as it is published: canonical JSON, not checked. */
export interface StateText {
  /** SHA-256 of the text. */
  readonly digest: string
  /** UTF-8; absent if there is more of it than was asked for. */
  readonly bytes: Uint8Array | undefined
}

/** @param most bytes of a text that is wanted and not only its digest */
export function stateText(state: ThreadState, most: number): StateText {
  const { history } = state
  const { before, behind } = aroundMessages(state)
  const head = Buffer.from(before)
  const tail = Buffer.from(behind)
  const messages: Uint8Array[] = []
  let size = head.byteLength + tail.byteLength + Math.max(0, history.length - 1)
  for (let i = 0; i < history.length && size <= most; i++) {
    const message = messageBytes(history.at(i) as HistoryEntry)
    size += message.byteLength
    messages.push(message)
  }
  if (size > most) return { digest: longDigest(history, before, behind), bytes: undefined }
  const bytes = Buffer.allocUnsafe(size)
  let at = put(bytes, head, 0)
  for (const [i, message] of messages.entries()) {
    if (i > 0) bytes[at++] = COMMA
    at = put(bytes, message, at)
  }
  put(bytes, tail, at)
  return { digest: sha256Hex(bytes), bytes }
}

const COMMA = 0x2c

function put(target: Uint8Array, bytes: Uint8Array, at: number): number {
  target.set(bytes, at)
  return at + bytes.byteLength
}

interface Hashed {
  readonly before: string
  readonly messages: number
  readonly hash: Hash
}

/** How far long histories have been hashed: a run adds a few messages, and does not pay for all that went before. */
const hashed = new WeakMap<object, Hashed>()

function longDigest(history: AppendList<HistoryEntry>, before: string, behind: string): string {
  const known = hashed.get(history.shared)
  const goesOn = known !== undefined && known.before === before && known.messages <= history.sharedLength
  const hash = goesOn ? known.hash.copy() : createHash('sha256').update(before)
  for (let i = goesOn ? known.messages : 0; i < history.length; i++) {
    if (i > 0) hash.update(',')
    hash.update(messageBytes(history.at(i) as HistoryEntry))
  }
  if (history.length === history.sharedLength) hashed.set(history.shared, { before, messages: history.length, hash: hash.copy() })
  return hash.update(behind).digest('hex')
}
