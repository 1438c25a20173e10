import { resolve } from 'node:path'
import { type Clock, reject, systemClock } from '../../base/index.ts'
import type { ContentStore, LogBackend, Owners, Projector, TopicName, TopicRecord } from '../ports.ts'
import {
  type Channel,
  type Connection,
  EventStore,
  Heads,
  IN_MEMORY,
  install,
  LogContent,
  logId,
  openDatabase,
  type Participant,
  Projectors,
  readable,
  translate,
  type WakeupOptions,
  Wakeups,
  Writer,
} from '../store/index.ts'
import { SqliteEventLog } from './event-log.ts'
import { watchLineage } from './lineage.ts'
import { FileOwners, soleOwner } from './owners.ts'
import { TopicStore } from './topic-store.ts'
import { SqliteTopics } from './topics.ts'

export interface SqliteLogOptions {
  /** Path of the file. Its `-wal` and `-shm` files stand beside it. */
  file: string
  clock?: Clock
  /** Opens without a right to write: appends reject with `log_read_only`. */
  readOnly?: boolean
  /** Makes the file if there is none (default true; never when `readOnly`). */
  create?: boolean
  /** How long a locked file is waited for before `log_busy`, in milliseconds (default 10,000). The event loop is never blocked. */
  busyTimeoutMs?: number
  /** Largest size of the file in bytes; beyond it appends reject with `log_full`. */
  maxBytes?: number
  wakeups?: WakeupOptions
  /** Where large values are kept. The file has a copy of those it refers to. Default: in the file alone. */
  content?: ContentStore | undefined
}

/**
 * Opens a log in one SQLite file (WAL, every commit synced). Several processes may have it open.
 * @throws ThreadlogError `log_missing`, `log_foreign`, `log_unavailable`, `log_read_only` (reject) · `log_busy`, `log_full` (retry) ·
 * `log_damaged`, `log_format_newer` (fatal)
 */
export async function openSqliteLog(options: SqliteLogOptions): Promise<LogBackend> {
  const { clock = systemClock, readOnly = false, busyTimeoutMs = 10_000, maxBytes } = options
  const file = options.file === IN_MEMORY ? IN_MEMORY : resolve(options.file)
  const create = !readOnly && (options.create ?? true)
  const connection = await openDatabase({ file, readOnly, create, busyTimeoutMs, maxBytes, now: () => clock.now() })
  try {
    return await assemble(connection, { clock, readOnly, wakeups: options.wakeups ?? {}, content: options.content })
  } catch (error) {
    connection.close()
    throw translate(error, file)
  }
}

async function assemble(
  connection: Connection,
  options: { clock: Clock; readOnly: boolean; wakeups: WakeupOptions; content: ContentStore | undefined },
): Promise<LogBackend> {
  const id = logId(connection)
  const written = new Set<Channel>()
  const write = (channel: Channel) => void written.add(channel)
  const topicStore = new TopicStore(connection, () => options.clock.now())
  const heads = new Heads(connection)
  const events = new EventStore(connection, heads)
  const projectors = new Projectors(connection, events, (topic: TopicName, record: TopicRecord) => {
    write(topic)
    topicStore.publish(topic, [record])
  })
  const wakeups = new Wakeups(connection, () => void (projectors.isBehind() && writer.submit(() => {}).catch(() => {})))
  const announcer: Participant = {
    begin() {},
    committed() {
      if (written.size > 0) wakeups.wake(written)
      written.clear()
    },
    rolledBack: () => written.clear(),
  }
  const writer: Writer = new Writer(connection, [heads, events, projectors, announcer], () => projectors.catchUp())
  const content = new LogContent(connection, (run) => writer.submit(run), options.content)
  const owners = await openOwners(connection, writer, options)
  const inMemory = connection.file === IN_MEMORY
  if (!inMemory) wakeups.observe(options.wakeups)
  const lineage = inMemory ? undefined : watchLineage(connection.file, (error) => writer.stop(error))

  let closing: Promise<void> | undefined
  const close = () => (closing ??= shut())
  async function shut(): Promise<void> {
    wakeups.close()
    lineage?.close()
    if (owners instanceof FileOwners) await owners.release()
    await writer.close()
    connection.close()
  }
  return {
    events: new SqliteEventLog({ id, connection, writer, events, projectors, wakeups, content, written: write, close }),
    topics: new SqliteTopics({ connection, writer, store: topicStore, wakeups, written: write }),
    content: options.readOnly ? content.readOnly() : content,
    tables: readable(connection),
    owners,
    install: async (wanted) => {
      if (options.readOnly) connection.look(() => assertComplete(wanted, projectors))
      else await install(wanted, projectors, writer)
    },
    cache: (change) => writer.submit(() => change(connection)),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Registered unless the file cannot be written: then this process may look, and owns nothing. */
async function openOwners(connection: Connection, writer: Writer, options: { clock: Clock; readOnly: boolean }): Promise<Owners> {
  if (connection.file === IN_MEMORY) return soleOwner()
  const owners = new FileOwners(connection, writer, options.clock)
  if (!options.readOnly) await owners.register()
  return owners
}

/** A log opened read-only can use tables that are there and complete, and make none. */
function assertComplete(wanted: readonly Projector[], projectors: Projectors): void {
  const behind = wanted.find((projector) => !projectors.isComplete(projector))
  if (behind === undefined) return
  throw reject('log_read_only', 'The tables of a projector are missing or behind, and the log was opened read-only.', {
    path: behind.name,
    hint: 'Open the log for writing once.',
  })
}
