import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogBackend } from '../../../src/log/index.ts'
import { clientOf, createTopics, type KafkaConnection, type KafkaLogOptions, openKafkaLog } from '../../../src/log/kafka/index.ts'

export interface KafkaPlaceOptions extends KafkaConnection {
  /** Partitions of each topic. Default 4. */
  partitions?: number
  /** Default true. */
  topics?: boolean
}

/** A log of its own on a broker: a prefix nobody else has, its topics, and a folder for replicas. */
export interface KafkaPlace extends AsyncDisposable {
  readonly connection: KafkaConnection
  readonly brokers: readonly string[]
  readonly prefix: string
  readonly folder: string
  /** Path of a replica in the folder. Default name `replica`. */
  replica(name?: string): string
  /** Opens the log, by default with a replica in memory; `remove` closes what is still open. */
  open(options?: Partial<KafkaLogOptions>): Promise<LogBackend>
  /** Closes logs, deletes the topics and the folder. A broker that is gone is no error. */
  remove(): Promise<void>
}

export async function kafkaPlace({ partitions, topics = true, ...connection }: KafkaPlaceOptions): Promise<KafkaPlace> {
  const prefix = `t${randomBytes(6).toString('hex')}`
  const kafka = clientOf(connection)
  if (topics) await createTopics(kafka, { prefix, partitions })
  const folder = mkdtempSync(join(tmpdir(), 'threadlog-'))
  const opened: LogBackend[] = []

  async function remove(): Promise<void> {
    await Promise.all(opened.splice(0).map((log) => log.close().catch(() => {})))
    rmSync(folder, { recursive: true, force: true })
    const admin = kafka.admin()
    try {
      await admin.connect()
      const names = (await admin.listTopics()).filter((name) => name.startsWith(`${prefix}.`))
      if (names.length > 0) await admin.deleteTopics({ topics: names })
    } catch {
      // Its prefix is used by nobody else, and the broker of a run goes with its topics.
    } finally {
      await admin.disconnect().catch(() => {})
    }
  }

  return {
    connection,
    brokers: connection.brokers,
    prefix,
    folder,
    replica: (name = 'replica') => join(folder, `${name}.db`),
    open: async (options) => {
      const log = await openKafkaLog({ ...connection, prefix, ...options })
      opened.push(log)
      return log
    },
    remove,
    [Symbol.asyncDispose]: remove,
  }
}
