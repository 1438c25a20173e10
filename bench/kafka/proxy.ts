import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** Passes connections on to a port of this host and holds back what is answered by `delayMs`. */
export class DelayingProxy {
  delayMs = 0
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
    client.on('data', (data) => broker.write(data))
    // Timers of one length keep their order.
    broker.on('data', (data) => {
      if (this.delayMs === 0) client.write(data)
      else setTimeout(() => client.write(data), this.delayMs)
    })
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
