import { setTimeout as delay } from 'node:timers/promises'
import { isThreadlogError } from '../../../src/base/index.ts'
import { type LogBackend, openLog } from '../../../src/log/index.ts'
import { openKafkaLog } from '../../../src/log/kafka/index.ts'
import type { Producer } from './inserter.ts'

/** A log as a process is told of it. */
export type LogAddress =
  | { sqlite: string }
  | { kafka: { brokers: readonly string[]; prefix: string /** Absent: in memory. */; replica?: string } }

/** What a storm runs on. */
export interface Ground {
  /** For what processes leave behind. */
  readonly folder: string
  readonly ledger: string
  /** The log for the process of that name, which is started again under it after its death. */
  address(name: string): LogAddress
  /** A program of another kind that writes results. */
  produce(): Promise<Producer>
  /** Milliseconds a frozen process is kept so: longer than an owner without a sign of life is waited for. */
  readonly freezeMs: readonly [least: number, most: number]
  /** Where a process can be frozen in the middle of a commit: true while one holds the write lock. */
  readonly isLocked?: () => Promise<boolean>
  /** Kills what the log runs on, and starts it again. */
  readonly breakLog?: () => Promise<void>
  /** Looks at what is left with the means of this ground alone. */
  verify(violate: (what: string) => void): Promise<void>
}

/** Milliseconds a log may be away when a process begins. */
const AWAY_MS = 60_000

/** Opens the log, once it can be: a supervisor would start the process again. */
export async function openGround(address: LogAddress): Promise<LogBackend> {
  if ('sqlite' in address) return openLog(`sqlite:${address.sqlite}`)
  const deadline = Date.now() + AWAY_MS
  for (;;)
    try {
      return await openKafkaLog({ ...address.kafka })
    } catch (error) {
      if (!isThreadlogError(error) || error.disposition !== 'retry' || Date.now() > deadline) throw error
      await delay(100)
    }
}
