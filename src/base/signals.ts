/**
 * A signal that aborts with the first of several, until it is released. Not `AbortSignal.any`: one made of another such signal was seen
 * never to abort once a garbage collection had run (Node 24).
 */
export function eitherSignal(...signals: readonly AbortSignal[]): { signal: AbortSignal; release(): void } {
  const either = new AbortController()
  function abort(this: AbortSignal) {
    either.abort(this.reason)
  }
  for (const signal of signals) {
    if (signal.aborted) abort.call(signal)
    else signal.addEventListener('abort', abort, { once: true })
  }
  const release = () => {
    for (const signal of signals) signal.removeEventListener('abort', abort)
  }
  return { signal: either.signal, release }
}

/** Resolves once `signal` has aborted. */
export const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve(), { once: true })))
