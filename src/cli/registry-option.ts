import { type Command, Option } from 'commander'
import type { RegistryConnection } from '../log/kafka/index.ts'
import { usage } from './errors.ts'
import { loadKafka } from './kafka-log.ts'

/** Adds `--registry`. */
export const registryOption = (command: Command, description: string): Command =>
  command.addOption(new Option('--registry <url>', description).env('THREADLOG_REGISTRY'))

/** A registry as the command line names it; user and password come from the environment. */
export async function registryAt(url: string | undefined): Promise<RegistryConnection> {
  if (!url) throw usage('A registry must be named.', { path: 'registry', expected: '--registry URL, or THREADLOG_REGISTRY' })
  const { credentials } = await loadKafka()
  const { THREADLOG_REGISTRY_USERNAME: user } = process.env
  return { url, ...(user && credentials('THREADLOG_REGISTRY', process.env)) }
}
