import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LogBackend } from '../../src/index.ts'
import { hasPython } from '../support/python.ts'
import { type CheckpointRow, type ReceiptRow, recordsOfTopic, rowsOfView } from './edges.ts'

/** Where the log of the demo is, and how programs outside of it read its edges. */
export interface LogPlace {
  /** What a process of its own opens. */
  readonly address: string
  readonly title: string
  /** What this process opens. */
  open(): Promise<string | LogBackend>
  /** The payout process: a command, and the language it is written in unless `language` says. */
  payouts(language?: string): { command: string; args: string[] }
  receipts(log: LogBackend): Promise<ReceiptRow[]>
  checkpoints(log: LogBackend): Promise<CheckpointRow[]>
  close(): Promise<void>
}

const local = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

/** One SQLite file, read and written by other programs through its views. */
export function sqlitePlace(file: string): LogPlace {
  return {
    address: `sqlite:${file}`,
    title: 'one SQLite file',
    open: async () => `sqlite:${file}`,
    payouts: (language = hasPython() ? 'python' : 'node') =>
      language === 'python'
        ? { command: 'python3', args: [local('./payouts.py'), file] }
        : { command: process.execPath, args: [local('./payouts.ts'), file] },
    receipts: async () => rowsOfView<ReceiptRow>(file, 'receipts'),
    checkpoints: async () => rowsOfView<CheckpointRow>(file, 'checkpoints'),
    close: async () => {},
  }
}

/** Topics of its own on a broker that is found or started; other programs use any Kafka client. */
export async function kafkaPlace(dir: string): Promise<LogPlace> {
  const { findBroker } = await import('../../test/support/kafka/ways.ts')
  const { clientOf, createTopics, openKafkaLog } = await import('../../src/log/kafka/index.ts')
  const found = await findBroker()
  if ('reason' in found) throw new Error(found.reason)
  const { brokers, way } = found
  const prefix = `demo${process.pid}-${Date.now()}`
  const kafka = clientOf({ brokers })
  const topics = await createTopics(kafka, { prefix })
  const address = `kafka://${brokers.join(',')}/${prefix}`
  return {
    address: `${address}?replica=${encodeURIComponent(join(dir, 'engine.db'))}`,
    title: `Kafka (${way === 'env' ? brokers : way})`,
    open: () => openKafkaLog({ brokers, prefix, replica: join(dir, 'client.db') }),
    payouts: () => ({ command: process.execPath, args: [local('./payouts-kafka.ts'), brokers.join(','), prefix] }),
    receipts: (log) => recordsOfTopic<ReceiptRow>(log, 'receipts'),
    checkpoints: (log) => recordsOfTopic<CheckpointRow>(log, 'checkpoints'),
    close: async () => {
      const admin = kafka.admin()
      await admin.connect()
      await admin.deleteTopics({ topics })
      await admin.disconnect()
      await found.stop()
    },
  }
}
