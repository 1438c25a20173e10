import { afterEach } from 'vitest'
import { openThreadlog, type Threadlog } from '../../../src/index.ts'
import type { Place } from './place.ts'
import { workerAgent } from './worker.ts'

/** For the test file that calls it: opens the application `shop` with its worker on a place; closed after each test. */
export function shops(): (place: Place) => Promise<Threadlog> {
  const opened: Threadlog[] = []
  afterEach(async () => {
    for (const threads of opened.splice(0)) await threads.close()
  })
  return async ({ log, ledger }) => {
    const threads = await openThreadlog({ log, application: 'shop', agents: [workerAgent({ ledger })] })
    opened.push(threads)
    return threads
  }
}
