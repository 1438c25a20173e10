import { createHash, type Hash } from 'node:crypto'
import { aroundMessages } from './harness-state.ts'
import { messageBytes } from './messages.ts'
import type { HistoryEntry, ThreadState } from './state.ts'

/**
 * The text of a HarnessState as it is published (canonical JSON, not checked) in UTF-8 pieces, most of them shared: read only.
 * @param most undefined if all of them are longer than this, in bytes
 */
export function statePieces(state: ThreadState, most: number): Uint8Array[] | undefined {
  const { history } = state
  const { before, behind } = aroundMessages(state)
  const pieces: Uint8Array[] = [Buffer.from(before)]
  const tail = Buffer.from(behind)
  let size = (pieces[0] as Uint8Array).byteLength + tail.byteLength
  for (let i = 0; i < history.length && size <= most; i++) {
    const entry = history.at(i) as HistoryEntry
    // Not loaded only to be found too long.
    if (entry.template.size > most) return undefined
    const message = messageBytes(entry)
    if (i > 0) pieces.push(COMMA)
    pieces.push(message)
    size += message.byteLength + (i > 0 ? 1 : 0)
  }
  pieces.push(tail)
  return size > most ? undefined : pieces
}

const COMMA = Buffer.from(',')

interface Hashed {
  readonly before: string
  readonly messages: number
  readonly hash: Hash
}

/** How far long histories have been hashed: a run adds a few messages, and does not pay for all that went before. */
const hashed = new WeakMap<object, Hashed>()

/** SHA-256 of the text of {@link statePieces}, for histories too long to be put together. */
export function stateDigest(state: ThreadState): string {
  const { history } = state
  const { before, behind } = aroundMessages(state)
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
