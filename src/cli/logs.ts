import { isThreadlogError } from '../base/index.ts'
import { type LogBackend, openLog } from '../log/index.ts'
import { indexProjectors } from '../projections/index.ts'

/**
 * Runs `look` on a log that is only looked at: no owner row, no write, so it works beside an engine, on a copy, and without permission to
 * write. If the index tables are missing or behind, the log is opened for writing once to bring them up; it is never created.
 * @throws ThreadlogError `log_missing`, …
 */
export async function looking<T>(address: string, look: (backend: LogBackend) => Promise<T>): Promise<T> {
  return closing(await openToLook(address), look)
}

async function openToLook(address: string): Promise<LogBackend> {
  const readOnly = await openLog(address, { readOnly: true })
  try {
    await readOnly.install(indexProjectors())
    return readOnly
  } catch (error) {
    await readOnly.close()
    if (!isThreadlogError(error, 'log_read_only')) throw error
  }
  return openToWrite(address)
}

async function openToWrite(address: string): Promise<LogBackend> {
  const backend = await openLog(address, { create: false })
  try {
    await backend.install(indexProjectors())
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

/** Closes after the work, also after a failed one; the first error wins. */
async function closing<T>(backend: LogBackend, work: (backend: LogBackend) => Promise<T>): Promise<T> {
  let result: T
  try {
    result = await work(backend)
  } catch (error) {
    await backend.close().catch(() => {})
    throw error
  }
  await backend.close()
  return result
}
