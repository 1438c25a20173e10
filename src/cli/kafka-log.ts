import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { reject } from '../base/index.ts'
import type { LogBackend } from '../log/index.ts'
import { usage } from './errors.ts'

// The Kafka client is loaded only when it is used.

export type KafkaModule = typeof import('../log/kafka/index.ts')
export function loadKafka(): Promise<KafkaModule> {
  quieten()
  return import('../log/kafka/index.ts')
}

const NEGATIVE_TIMER = 'TimeoutNegativeWarning'
let quiet = false

/** kafkajs 2.2.4 sets a timer in the past when it connects, and Node 24 warns of it on standard error. It means nothing. */
function quieten(): void {
  if (quiet) return
  quiet = true
  const emitWarning = process.emitWarning.bind(process) as (warning: string | Error, ...rest: unknown[]) => void
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] !== NEGATIVE_TIMER) emitWarning(warning, ...rest)
  }
}

export const isKafka = (address: string): boolean => address.startsWith('kafka:')

interface OpenOptions {
  readOnly?: boolean
  onTrouble?(trouble: unknown): void
}

/** Opens a log on Kafka with its replica: the file the address names, else one in the user's cache that all processes share. */
export async function openKafka(address: string, { readOnly, onTrouble }: OpenOptions): Promise<LogBackend> {
  const { kafkaAddress, openKafkaLog } = await loadKafka()
  const { replica = cachedReplica, ...where } = kafkaAddress(address)
  return openKafkaLog({ ...where, replica, ...(readOnly && { readOnly }), ...(onTrouble && { onTrouble }) })
}

/** Named by cluster and prefix, so that another cluster at the same address gets another file. */
export function cachedReplica({ cluster, prefix }: { cluster: string; prefix: string }): string {
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'threadlog', encodeURIComponent(cluster))
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw reject('replica_unavailable', 'The folder of the replica cannot be made.', {
      path: folder,
      hint: 'Name a file for it: kafka://…/prefix?replica=FILE.',
      cause,
    })
  }
  return join(folder, `${prefix}.db`)
}

/** For commands about topics. @throws usage error for a log without topics of its own */
export function requireKafka(address: string): void {
  if (isKafka(address)) return
  throw usage('Only a log on Kafka has topics to make and check.', {
    path: 'log',
    expected: '--log kafka://host:port[,host:port…]/prefix',
  })
}
