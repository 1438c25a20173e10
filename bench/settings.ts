import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import type { Logs } from './logs.ts'
import type { Line } from './report.ts'
import { now, quantile } from './statistics.ts'
import { MESSAGE_BYTES, RESULT_BYTES } from './workload.ts'

/** Processes that wanted to run in the last minute. */
export const load = (): number => Number(loadavg()[0]?.toFixed(1))

/** What every line says about how it was measured. */
export function settingsOf({ kind, folder, broker }: Logs): Line['settings'] {
  return {
    node: process.versions.node,
    sqlite: process.versions['sqlite'] ?? '',
    platform: `${process.platform} ${process.arch}`,
    cpus: availableParallelism(),
    ...(broker
      ? broker.settings()
      : {
          synchronous: kind === 'memory' ? 'none' : 'FULL',
          journal_mode: kind === 'memory' ? 'memory' : 'WAL',
          wal_autocheckpoint: 1_000,
        }),
    load: load(),
    message_bytes: MESSAGE_BYTES,
    result_bytes: RESULT_BYTES,
    sync_ms: folder === undefined ? null : syncMs(folder),
  }
}

/** Median time of writing 4 KB and having it on disk, in that folder. */
function syncMs(folder: string): number {
  const file = join(folder, `sync-${process.pid}`)
  const descriptor = openSync(file, 'w')
  const page = Buffer.alloc(4_096, 1)
  const times: number[] = []
  for (let i = 0; i < 50; i++) {
    const begun = now()
    writeSync(descriptor, page)
    fdatasyncSync(descriptor)
    times.push(now() - begun)
  }
  closeSync(descriptor)
  rmSync(file)
  return Number(quantile(times, 0.5)?.toFixed(3))
}
