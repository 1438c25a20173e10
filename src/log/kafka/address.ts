import { readFileSync } from 'node:fs'
import { reject, type ThreadlogError } from '../../base/index.ts'
import type { KafkaConnection } from './connection.ts'
import { TOPIC_NAMES, topicName } from './topic-plan.ts'

/** What an address of a log on Kafka says. */
export interface KafkaAddress extends KafkaConnection {
  prefix: string
  /** File of the replica, if the address names one. */
  replica?: string
}

type Environment = Readonly<Record<string, string | undefined>>

const EXPECTED = 'kafka://host:port[,host:port…]/prefix'
const OPTIONS = ['replica', 'tls', 'ca', 'cert', 'key', 'sasl']
const MECHANISMS = ['plain', 'scram-sha-256', 'scram-sha-512'] as const
/** A topic's name has at most so many characters. */
const NAME_LENGTH = 249
const LONGEST = Math.max(...TOPIC_NAMES.map((topic) => topicName('', topic).length))

/**
 * Reads `kafka://host:port[,host:port…]/prefix`. Options behind `?`: `replica=FILE`; `tls=true`, with `ca=FILE`, `cert=FILE` and `key=FILE` (PEM);
 * `sasl=plain|scram-sha-256|scram-sha-512`, with the user in `THREADLOG_KAFKA_USERNAME` and the password in `THREADLOG_KAFKA_PASSWORD`, or in
 * the file that `THREADLOG_KAFKA_PASSWORD_FILE` names. No error repeats the address: someone may have put a password into it.
 * @throws ThreadlogError `log_url_invalid`, `credentials_missing`
 */
export function kafkaAddress(address: string, env: Environment = process.env): KafkaAddress {
  const [, authority, prefix, query] = /^kafka:\/\/([^/?#]*)\/([^/?#]*)(?:\?([^#]*))?$/.exec(address) ?? []
  if (authority === undefined || prefix === undefined) throw invalid('This is not the address of a log on Kafka.', EXPECTED)
  if (authority.includes('@'))
    throw invalid('An address has no credentials in it.', 'THREADLOG_KAFKA_USERNAME and THREADLOG_KAFKA_PASSWORD')
  const brokers = authority.split(',')
  if (!brokers.every(isBroker)) throw invalid('A broker is a host and a port.', EXPECTED)
  if (!/^[\w.-]+$/.test(prefix) || /^\.+$/.test(prefix) || prefix.length + LONGEST > NAME_LENGTH)
    throw invalid(
      'Topics cannot have names with this prefix.',
      `letters, digits, '.', '_' and '-', at most ${NAME_LENGTH - LONGEST}`,
    )
  const options = new URLSearchParams(query)
  for (const name of new Set(options.keys()))
    if (!OPTIONS.includes(name) || options.getAll(name).length > 1)
      throw invalid('The address has an option that it cannot have.', `each at most once: ${OPTIONS.join(', ')}`)
  const replica = options.get('replica')
  if (replica === '' || replica?.includes('\0')) throw invalid('The option replica names no file.', 'replica=FILE')
  return { brokers, prefix, ...(replica && { replica }), ...tlsOf(options), ...saslOf(options, env) }
}

function isBroker(text: string): boolean {
  const port = /^(?:[^\s:[\]]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})$/.exec(text)?.[1]
  return port !== undefined && Number(port) > 0 && Number(port) < 65_536
}

function tlsOf(options: URLSearchParams): Pick<KafkaConnection, 'ssl'> {
  const tls = options.get('tls')
  if (tls !== null && !['true', 'false'].includes(tls)) throw invalid('The option tls is not known.', 'tls=true or tls=false')
  const files = ['ca', 'cert', 'key'].flatMap((name) => {
    const file = options.get(name)
    return file === null ? [] : [[name, read(file, name)] as const]
  })
  if (tls !== 'true' && files.length > 0) throw invalid('ca, cert and key go with tls.', 'tls=true')
  if (options.has('cert') !== options.has('key')) throw invalid('cert and key go together.', 'both or none')
  if (tls !== 'true') return {}
  return { ssl: files.length === 0 ? true : Object.fromEntries(files) }
}

function saslOf(options: URLSearchParams, env: Environment): Pick<KafkaConnection, 'sasl'> {
  const given = options.get('sasl')
  if (given === null) return {}
  const mechanism = MECHANISMS.find((name) => name === given.toLowerCase())
  if (!mechanism) throw invalid('The option sasl is not known.', MECHANISMS.join(', '))
  return { sasl: { mechanism, ...credentials('THREADLOG_KAFKA', env) } }
}

/**
 * User and password from `<name>_USERNAME` and `<name>_PASSWORD` or the file of `<name>_PASSWORD_FILE`.
 * @throws ThreadlogError `credentials_missing` naming the variable, never a value
 */
export function credentials(name: string, env: Environment): { username: string; password: string } {
  const username = env[`${name}_USERNAME`]
  const file = env[`${name}_PASSWORD_FILE`]
  const password = env[`${name}_PASSWORD`] ?? (file && read(file, `${name}_PASSWORD_FILE`).replace(/\r?\n$/, ''))
  if (username && password) return { username, password }
  throw reject('credentials_missing', 'There is no user or no password.', {
    path: username ? `${name}_PASSWORD` : `${name}_USERNAME`,
    expected: `${name}_USERNAME, and ${name}_PASSWORD or ${name}_PASSWORD_FILE, in the environment`,
  })
}

function read(file: string, name: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    throw reject('log_url_invalid', `A file cannot be read (${code}).`, { path: name, expected: 'a file this process may read' })
  }
}

const invalid = (message: string, expected: string): ThreadlogError =>
  reject('log_url_invalid', message, { path: 'log', expected })
