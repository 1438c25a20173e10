import { isThreadlogError } from '../base/index.ts'
import { logProjectors } from '../continuations/index.ts'
import { openThreadlog, type Threadlog, type ThreadlogOptions } from '../engine/index.ts'
import { type LogBackend, openLog } from '../log/index.ts'
import { isKafka, openKafka } from './kafka-log.ts'

interface OpenOptions {
  readOnly?: boolean
  create?: boolean
  /** Told of what failed and is tried again. */
  onTrouble?(trouble: unknown): void
}

/** Opens a log by its address. Topics of a log on Kafka are made by `topics create` only. */
export const openAddress = (address: string, o: OpenOptions): Promise<LogBackend> =>
  isKafka(address) ? openKafka(address, o) : openLog(address, o)

/**
 * Runs `look` on a log that is only looked at: no owner row, no write, so it works beside an engine, on a copy, and without permission to
 * write. If the index tables are missing or behind, the log is opened for writing once to bring them up; it is never created.
 * @throws ThreadlogError `log_missing`, …
 */
export async function looking<T>(address: string, look: (backend: LogBackend) => Promise<T>): Promise<T> {
  return closing(await openToLook(address), look)
}

async function openToLook(address: string): Promise<LogBackend> {
  const readOnly = await openAddress(address, { readOnly: true })
  try {
    await readOnly.install(logProjectors())
    return readOnly
  } catch (error) {
    await readOnly.close()
    if (!isThreadlogError(error, 'log_read_only')) throw error
  }
  return openToWrite(address)
}

async function openToWrite(address: string): Promise<LogBackend> {
  const backend = await openAddress(address, { create: false })
  try {
    await backend.install(logProjectors())
    return backend
  } catch (error) {
    await backend.close()
    throw error
  }
}

/** Runs `work` on a log that must exist and is written to. */
export async function writing<T>(address: string, work: (backend: LogBackend) => Promise<T>): Promise<T> {
  return closing(await openToWrite(address), work)
}

/** Runs `work` with threads on a log, which is made if there is none. */
export const working = <T>(
  address: string,
  { onTrouble, ...o }: Omit<ThreadlogOptions, 'log'> & Pick<OpenOptions, 'onTrouble'>,
  work: (threads: Threadlog) => Promise<T>,
): Promise<T> =>
  openAddress(address, { onTrouble }).then((log) =>
    closing(log, () => openThreadlog({ ...o, log }).then((threads) => closing(threads, work))),
  )

/** Closes after the work, also after a failed one; the first error wins. */
async function closing<O extends { close(): Promise<void> }, T>(opened: O, work: (opened: O) => Promise<T>): Promise<T> {
  let result: T
  try {
    result = await work(opened)
  } catch (error) {
    await opened.close().catch(() => {})
    throw error
  }
  await opened.close()
  return result
}
