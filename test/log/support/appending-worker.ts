import { workerData } from 'node:worker_threads'
import { openSqliteLog } from '../../../src/log/index.ts'
import { grow } from '../../../src/testing/log-conformance/writing.ts'

/** Appends one event after the other to a stream, over a connection of its own. */
const { file, stream, events } = workerData as { file: string; stream: string; events: number }
const log = await openSqliteLog({ file })
for (let i = 0; i < events; i++) await grow(log.events, stream, 1)
await log.close()
