import { isIP, connect as openSocket, type Socket } from 'node:net'
import { type ConnectionOptions, connect as openTls } from 'node:tls'
import kafkajs, { type ISocketFactory, type Kafka, type Producer, type ProducerConfig, type SASLOptions } from 'kafkajs'
import { installCodecs } from './codecs.ts'
import { tuned } from './inside.ts'

/** How to reach a cluster. */
export interface KafkaConnection {
  /** `host:port` of one broker or more. */
  brokers: readonly string[]
  /** Name the brokers log. Default `threadlog`. */
  clientId?: string
  /** TLS: true, or what Node's `tls.connect` takes. */
  ssl?: boolean | ConnectionOptions
  /** @internal Leads every connection somewhere else than the brokers say: tests put a bad network there. */
  through?(address: { host: string; port: number }): { host: string; port: number }
  sasl?: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string }
}

/** Milliseconds to wait for a TCP connection; for an answer. A frozen leader holds a request no longer than the latter. */
const CONNECT_MS = 3_000
const REQUEST_MS = 10_000
/** Milliseconds after which leaders are looked up again even if nobody failed: kafkajs does not do so on a time-out. */
export const METADATA_MS = 5_000

/** Milliseconds that closing waits for a cluster that may be away. */
export const CLOSE_MS = 2_000

/** Resolves when `work` has ended, however, or after `ms`. */
export async function within(ms: number, work: Promise<unknown> | undefined): Promise<void> {
  if (!work) return
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([work.catch(() => {}), enough])
  clearTimeout(timer)
}

/** Few and quick: whoever calls decides whether to go on. */
const RETRY = { initialRetryTime: 50, maxRetryTime: 400, retries: 3 }

/** A client of the cluster. It logs nothing: what matters is thrown or told. */
export function clientOf({ brokers, clientId = 'threadlog', ssl, sasl, through }: KafkaConnection): Kafka {
  silencePartitionerNotice()
  installCodecs()
  const kafka = new kafkajs.Kafka({
    clientId,
    brokers: [...brokers],
    ...(ssl !== undefined && { ssl: ssl as ConnectionOptions }),
    ...(sasl && { sasl: { ...sasl } as SASLOptions }),
    connectionTimeout: CONNECT_MS,
    authenticationTimeout: CONNECT_MS,
    requestTimeout: REQUEST_MS,
    retry: RETRY,
    logCreator: () => () => {},
    socketFactory: through ? (to) => socketFactory({ ...to, ...through(to) }) : socketFactory,
  })
  return tuned(kafka)
}

/** kafkajs warns once for each process that its default partitioner has changed; this package names every partition itself. */
function silencePartitionerNotice(): void {
  process.env['KAFKAJS_NO_PARTITIONER_WARNING'] ??= '1'
}

/**
 * Small requests must not wait for each other (Nagle). Each call that fails while a socket still connects has kafkajs disconnect and `unref` it once more,
 * and Node keeps a listener for each: once is enough.
 */
export const socketFactory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const socket: Socket = ssl
    ? openTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ...ssl }, onConnect)
    : openSocket({ host, port }, onConnect)
  socket.setNoDelay(true)
  socket.setKeepAlive(true, 60_000)
  const unref = socket.unref.bind(socket)
  let asked = false
  socket.unref = () => {
    if (!asked || !socket.connecting) unref()
    asked = true
    return socket
  }
  return socket
}

/** A producer of this package, not yet connected: every record names its partition, and no topic is made by the way. */
export const producerOf = (kafka: Kafka, config: ProducerConfig): Producer =>
  kafka.producer({
    allowAutoTopicCreation: false,
    metadataMaxAge: METADATA_MS,
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition as number,
    ...config,
  })
