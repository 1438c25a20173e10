import type { Connection } from './connection.ts'
import { closed } from './errors.ts'
import type { Channel, Wakeups } from './wakeups.ts'

export interface Tail<T> {
  channel: Channel
  signal?: AbortSignal
  /** What is there now and not yet given; empty at the end. Moves the cursor. */
  take(): T[]
}

/**
 * Gives what is there, then what comes, until `signal` aborts or the log closes.
 * @throws ThreadlogError `log_closed` at once when the log is closed already
 */
export function live<T>(connection: Connection, wakeups: Wakeups, tail: Tail<T>): AsyncGenerator<T[]> {
  if (wakeups.closed) throw closed()
  return run(connection, wakeups, tail)
}

async function* run<T>(connection: Connection, wakeups: Wakeups, { channel, signal, take }: Tail<T>): AsyncGenerator<T[]> {
  const over = () => wakeups.closed || signal?.aborted === true
  while (!over()) {
    let items: T[]
    try {
      items = await connection.query(take)
    } catch (error) {
      if (over()) return
      throw error
    }
    if (over()) return
    if (items.length > 0) yield items
    else await wakeups.wait(channel, signal)
  }
}
