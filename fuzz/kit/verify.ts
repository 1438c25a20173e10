import { isThreadlogError } from '../../src/base/index.ts'
import { walkLog } from '../../src/cli/verify/log-walk.ts'
import { checking, checkThread, claimsOf } from '../../src/cli/verify/thread-check.ts'
import type { LogBackend } from '../../src/log/index.ts'
import { HarnessState, isThreadId } from '../../src/messages/index.ts'
import { harnessState, type ThreadState } from '../../src/projections/index.ts'
import { Fault, promise } from './border.ts'
import { nameOf } from './marker.ts'

/** The first fault `threadlog verify --all` would tell of, or undefined. */
export async function firstFault(backend: LogBackend, indexed = true): Promise<string | undefined> {
  const claims = await claimsOf(backend)
  const walked = await walkLog(backend, new AbortController().signal)
  const check = await checking(backend, indexed)
  for (const [stream, { reason }] of walked.refused) return `${stream.slice(0, 8)}: not-accepted, ${reason}`
  for (const stream of walked.streams) {
    const { fault } = await checkThread(check, stream, claims.get(stream) ?? [])
    if (fault) return `${stream.slice(0, 8)}: ${fault.code} at ${fault.version}, ${fault.message}`
    const { state, quarantine } = await check.store.fold(stream)
    if (!quarantine && state.identity?.kind === 'harness') exportable(state)
  }
  return undefined
}

/** What stands in the log can be taken elsewhere. */
function exportable(state: ThreadState): void {
  if (!isThreadId(state.identity?.thread)) return
  try {
    HarnessState.parse(harnessState(state).toText())
  } catch (error) {
    throw new Fault('damage', `a thread cannot be exported: ${nameOf(error)}`, isThreadlogError(error) ? (error.path ?? '') : '')
  }
}

/** @throws Fault when the log is not what was accepted */
export async function assertVerifies(backend: LogBackend): Promise<void> {
  const fault = await firstFault(backend)
  promise(fault === undefined, 'damage', 'the log does not verify', fault)
}
