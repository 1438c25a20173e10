import { connect, createServer, type Server, type Socket } from 'node:net'

/** How often, in percent of the requests of a kind. */
export interface ProxyFaults {
  /** The connection is cut before a request arrives. */
  cutBefore: number
  /** It arrives, and the connection is cut before the answer. */
  cutAfter: number
  /** It arrives some milliseconds later. */
  delayed: number
  /** A batch of records arrives once more, some time later, over a connection of its own. */
  repeated: number
}

const NONE: ProxyFaults = { cutBefore: 0, cutAfter: 0, delayed: 0, repeated: 0 }

export type Injected = Record<keyof ProxyFaults, number>

const PRODUCE = 0
/** Kinds of requests that suffer: Produce, Fetch, ListOffsets, Metadata. */
const SUFFERING = new Set([PRODUCE, 1, 2, 3])

/** Whole frames of a Kafka connection: four bytes of length, and what they count. */
export function* framesOf(buffer: { rest: Buffer }, chunk: Buffer): Generator<Buffer> {
  buffer.rest = buffer.rest.length === 0 ? chunk : Buffer.concat([buffer.rest, chunk])
  while (buffer.rest.length >= 4) {
    const end = 4 + buffer.rest.readInt32BE(0)
    if (buffer.rest.length < end) return
    yield buffer.rest.subarray(0, end)
    buffer.rest = buffer.rest.subarray(end)
  }
}

/** Stands between clients and a broker, and spoils what passes. The broker's own address must be led to it: see `through` of a connection. */
export class FaultyProxy {
  readonly injected: Injected = { cutBefore: 0, cutAfter: 0, delayed: 0, repeated: 0 }
  readonly #server: Server
  readonly #broker: { host: string; port: number }
  readonly #chance: (percent: number) => boolean
  readonly #sockets = new Set<Socket>()
  #faults: ProxyFaults = NONE

  private constructor(broker: { host: string; port: number }, random: () => number) {
    this.#broker = broker
    this.#chance = (percent) => random() * 100 < percent
    this.#server = createServer((client) => this.#serve(client))
  }

  /** Passes everything at first. @param random numbers from 0 to 1, of a seed */
  static async start(broker: string, random: () => number): Promise<FaultyProxy> {
    const [host = '', port] = broker.split(':')
    const proxy = new FaultyProxy({ host, port: Number(port) }, random)
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  /** Where clients go instead of the broker. */
  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: (this.#server.address() as { port: number }).port }
  }

  /** From now on. */
  spoil(faults: ProxyFaults): void {
    this.#faults = faults
  }

  /** From now on everything passes as it is. */
  heal(): void {
    this.#faults = NONE
  }

  #happens(fault: keyof ProxyFaults): boolean {
    if (!this.#chance(this.#faults[fault])) return false
    this.injected[fault]++
    return true
  }

  #open(): Socket {
    const socket = connect(this.#broker)
    socket.setNoDelay(true)
    this.#keep(socket)
    return socket
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
  }

  #serve(client: Socket): void {
    client.setNoDelay(true)
    this.#keep(client)
    const broker = this.#open()
    const cut = () => {
      client.destroy()
      broker.destroy()
    }
    client.on('close', cut)
    broker.on('close', cut)
    /** Of the request whose answer must not come back. */
    const unanswered = new Set<number>()
    const answers = { rest: Buffer.alloc(0) as Buffer }
    broker.on('data', (chunk: Buffer) => {
      for (const frame of framesOf(answers, chunk)) {
        if (unanswered.has(frame.readInt32BE(4))) return cut()
        client.write(frame)
      }
    })
    const requests = { rest: Buffer.alloc(0) as Buffer }
    let turn: Promise<unknown> = Promise.resolve()
    client.on('data', (chunk: Buffer) => {
      for (const frame of framesOf(requests, chunk)) {
        const copy = Buffer.from(frame)
        turn = turn.then(() => this.#request(copy, { broker, cut, unanswered }))
      }
    })
  }

  async #request(
    frame: Buffer,
    { broker, cut, unanswered }: { broker: Socket; cut(): void; unanswered: Set<number> },
  ): Promise<void> {
    const kind = frame.readInt16BE(4)
    if (SUFFERING.has(kind)) {
      if (this.#happens('delayed')) await new Promise((resolve) => setTimeout(resolve, 15))
      if (this.#happens('cutBefore')) return cut()
      if (this.#happens('cutAfter')) unanswered.add(frame.readInt32BE(8))
      if (kind === PRODUCE && this.#happens('repeated')) setTimeout(() => this.#open().write(frame), 10).unref()
    }
    if (!broker.destroyed) broker.write(frame)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
