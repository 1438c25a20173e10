import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { framesOf } from '../../test/support/kafka/faulty-proxy.ts'

/** Names of requests by their number in the protocol. */
const KINDS: Readonly<Record<number, string>> = {
  0: 'produce',
  1: 'fetch',
  2: 'list_offsets',
  3: 'metadata',
  9: 'offset_fetch',
  10: 'find_coordinator',
  12: 'heartbeat',
  22: 'init_producer_id',
  24: 'add_partitions_to_txn',
  25: 'add_offsets_to_txn',
  26: 'end_txn',
  28: 'txn_offset_commit',
}

/** Passes connections on to a port of this host, holds back what is answered by `delayMs`, and counts the requests. */
export class DelayingProxy {
  delayMs = 0
  /** Requests so far by kind, by the id that the client gives itself. */
  readonly requests = new Map<string, Map<string, number>>()
  readonly port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, port: number) {
    this.#server = server
    this.port = port
  }

  static async start(target: number): Promise<DelayingProxy> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const proxy = new DelayingProxy(server, (server.address() as { port: number }).port)
    server.on('connection', (client) => proxy.#pass(client, connect({ port: target, host: '127.0.0.1', noDelay: true })))
    return proxy
  }

  #pass(client: Socket, broker: Socket): void {
    for (const [socket, other] of [
      [client, broker],
      [broker, client],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    const passing = { rest: Buffer.alloc(0) as Buffer }
    client.on('data', (data) => {
      broker.write(data)
      for (const frame of framesOf(passing, data as Buffer)) this.#count(frame)
    })
    // Timers of one length keep their order.
    broker.on('data', (data) => {
      if (this.delayMs === 0) client.write(data)
      else setTimeout(() => client.write(data), this.delayMs)
    })
  }

  /** Header of a request: kind, version, correlation id, client id. */
  #count(frame: Buffer): void {
    const number = frame.readInt16BE(4)
    const kind = KINDS[number] ?? `request_${number}`
    const by = frame.toString('utf8', 14, 14 + Math.max(0, frame.readInt16BE(12)))
    const kinds = this.requests.get(by) ?? new Map<string, number>()
    this.requests.set(by, kinds.set(kind, (kinds.get(kind) ?? 0) + 1))
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
