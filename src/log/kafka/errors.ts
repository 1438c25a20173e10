import { fatal, isThreadlogError, reject, retryLater, type ThreadlogError } from '../../base/index.ts'

/** What kafkajs throws, as far as it is looked at. Its messages may name hosts, never records. */
interface ClientError {
  name?: unknown
  type?: unknown
  /** Of a socket: what Node calls it. Of the protocol: a number, which is not looked at. */
  code?: unknown
  cause?: unknown
  retriable?: unknown
}

/** Protocol error types found in an error and its causes, outermost first, with class names and codes of sockets. */
function kinds(error: unknown): string[] {
  const found: string[] = []
  for (let at = error as ClientError | undefined, depth = 0; at && typeof at === 'object' && depth < 8; depth++) {
    for (const kind of [at.type, at.name, at.code]) if (typeof kind === 'string') found.push(kind)
    at = at.cause as ClientError | undefined
  }
  return found
}

export const isKind = (error: unknown, ...wanted: string[]): boolean => kinds(error).some((kind) => wanted.includes(kind))

const AUTHENTICATION = ['KafkaJSSASLAuthenticationError', 'UNSUPPORTED_SASL_MECHANISM', 'SASL_AUTHENTICATION_FAILED']
/** What Node says of a certificate. */
const UNTRUSTED = [
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]
const AUTHORIZATION = [
  'TOPIC_AUTHORIZATION_FAILED',
  'GROUP_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'TRANSACTIONAL_ID_AUTHORIZATION_FAILED',
]
export const MISSING = ['UNKNOWN_TOPIC_OR_PARTITION', 'KafkaJSTopicMetadataNotLoaded', 'KafkaJSMetadataNotLoaded']
export const TOO_LARGE = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']
export const FENCED = ['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'INVALID_PRODUCER_ID_MAPPING']

/** True for what no repetition will change. */
export const isHopeless = (error: unknown): boolean =>
  isThreadlogError(error) ? error.disposition !== 'retry' : isKind(error, ...AUTHENTICATION, ...AUTHORIZATION, ...UNTRUSTED)

/**
 * The coded form of what the client says; a coded error comes back as it is.
 * Codes: `log_unauthorized`, `log_untrusted`, `topic_missing` (reject) · `log_unavailable` (retry).
 * @param path the topic, group or broker asked
 */
export function translate(error: unknown, path: string): ThreadlogError {
  if (isThreadlogError(error)) return error
  const [kind = 'unknown'] = kinds(error)
  const info = { path, details: { kind }, cause: error }
  if (isKind(error, ...AUTHENTICATION))
    return reject('log_unauthorized', 'The cluster does not accept these credentials.', {
      ...info,
      hint: 'Check user, password and SASL mechanism.',
    })
  if (isKind(error, ...UNTRUSTED))
    return reject('log_untrusted', 'The certificate of the broker is not trusted.', {
      ...info,
      expected: 'a certificate for this host, from an authority that is known here',
      hint: 'Name its authority with the option ca, and the host as the certificate does.',
    })
  if (isKind(error, ...AUTHORIZATION))
    return reject('log_unauthorized', 'The cluster does not allow this.', { ...info, hint: 'Check the ACLs of this user.' })
  if (isKind(error, ...MISSING))
    return reject('topic_missing', 'The cluster has no such topic or partition.', {
      ...info,
      hint: 'Run `threadlog topics create`.',
    })
  return retryLater('log_unavailable', 'The cluster did not answer.', {
    ...info,
    hint: 'Check the broker addresses and that the brokers are up.',
  })
}

export const closed = (): ThreadlogError => reject('log_closed', 'The log is closed.', { hint: 'Open it again.' })

/** R6: the log is not the one this process has read; nothing of this partition is read on. */
export const stopped = (
  code: 'log_gap' | 'log_truncated' | 'log_changed',
  message: string,
  path: string,
  details: Record<string, string | number>,
): ThreadlogError =>
  fatal(code, message, {
    path,
    details,
    hint: 'Look at the topic with `threadlog doctor`; then build a new replica, or restore the log.',
  })
