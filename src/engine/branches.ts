import { isThreadlogError } from '../base/index.ts'
import { type ThreadKey, threadStream } from '../events/index.ts'
import { fork as forked, leaveBranch } from '../harness/index.ts'
import { harnessState, Proposal, type ThreadState, type ThreadStore } from '../projections/index.ts'
import { cancelThread } from './cancel.ts'

const ACTOR = { kind: 'api', id: '', source: 'fork' }

const contextOf = (store: ThreadStore, stream: string) => ({
  ...{ stream, now: store.clock.now(), actor: ACTOR },
  ...{ runId: null, attempt: null },
})

/** Opens a thread that begins as another one was. @throws ThreadlogError `thread_exists` */
export async function fork(store: ThreadStore, from: ThreadState, key: ThreadKey): Promise<void> {
  const copied = harnessState(from).fork({ threadId: key.thread, ids: store.ids })
  const parent = { stream: from.identity?.stream ?? '', version: from.version, hash: from.hash }
  const stream = threadStream(key)
  await store.commit(stream, (state) => forked(Proposal.on(state, contextOf(store, stream)), key, copied, parent))
}

/**
 * Forks, then ends what the first thread does. The new thread comes first: a crash between the two leaves both, and the same call again does
 * the rest.
 * @param at the version that was asked for; undefined: the newest
 */
export async function takePlace(store: ThreadStore, from: ThreadState, key: ThreadKey, at: number | undefined): Promise<void> {
  try {
    await fork(store, from, key)
  } catch (error) {
    if (!isThreadlogError(error, 'thread_exists') || !(await isForkOf(store, key, from, at))) throw error
  }
  const left = from.identity?.stream ?? ''
  await store.commit(left, (state) => leaveBranch(Proposal.on(state, contextOf(store, left)), key.thread))
  await cancelThread(store, left, `goes on as ${key.thread}`, null)
}

async function isForkOf(store: ThreadStore, key: ThreadKey, from: ThreadState, at: number | undefined): Promise<boolean> {
  for await (const [first] of store.backend.events.read(threadStream(key), 0)) {
    const event = first?.event
    const parent = event?.type === 'thread.opened/1' ? event.data.origin.parent : null
    return parent?.stream === from.identity?.stream && (at === undefined || parent?.version === at)
  }
  return false
}
