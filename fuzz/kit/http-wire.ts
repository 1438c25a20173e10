import { connect } from 'node:net'

/** One answer on a connection. */
export interface HttpAnswer {
  readonly status: number
  readonly body: string
}

export interface Exchange {
  readonly answers: HttpAnswer[]
  /** False when what came is no sequence of HTTP answers. */
  readonly wellFormed: boolean
  readonly raw: string
}

export interface Sending {
  /** Bytes, one character each; between two pieces the event loop turns. */
  readonly pieces: readonly string[]
  /** What the client does after the last piece: end its side, break the connection, or wait. */
  readonly after: 'end' | 'break' | 'wait'
}

/** Sends bytes to a port and reads until the server closes, has been silent for a while, or `answers` have come. */
export function exchange(port: number, { pieces, after }: Sending, answers: number, silenceMs: number): Promise<Exchange> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const chunks: Buffer[] = []
    let timer: NodeJS.Timeout | undefined
    const done = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(read(Buffer.concat(chunks)))
    }
    const patient = () => {
      clearTimeout(timer)
      timer = setTimeout(done, silenceMs)
    }
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      patient()
      const got = read(Buffer.concat(chunks))
      if (got.answers.length >= answers && got.wellFormed) done()
    })
    socket.on('error', () => {})
    socket.on('close', done)
    socket.on('connect', async () => {
      patient()
      for (const piece of pieces) {
        if (socket.destroyed) return
        socket.write(piece, 'latin1')
        await new Promise((next) => setImmediate(next))
      }
      if (after === 'end') socket.end()
      if (after === 'break') socket.destroy()
    })
  })
}

function read(bytes: Buffer): Exchange {
  const raw = bytes.toString('latin1')
  const answers: HttpAnswer[] = []
  let rest = raw
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    const status = /^HTTP\/1\.[01] (\d{3}) /.exec(rest)?.[1]
    if (end < 0 || status === undefined) return { answers, wellFormed: false, raw }
    const head = rest.slice(0, end)
    const body = bodyOf(head, rest.slice(end + 4))
    if (!body) return { answers, wellFormed: false, raw }
    if (status !== '100') answers.push({ status: Number(status), body: Buffer.from(body.text, 'latin1').toString('utf8') })
    rest = body.rest
  }
  return { answers, wellFormed: true, raw }
}

function bodyOf(head: string, rest: string): { text: string; rest: string } | undefined {
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length !== undefined) {
    if (rest.length < Number(length)) return undefined
    return { text: rest.slice(0, Number(length)), rest: rest.slice(Number(length)) }
  }
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) return { text: '', rest }
  let text = ''
  for (let at = 0; ; ) {
    const line = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.slice(at, line), 16)
    if (line < 0 || Number.isNaN(size) || rest.length < line + 4 + size) return undefined
    text += rest.slice(line + 2, line + 2 + size)
    at = line + 4 + size
    if (size === 0) return { text, rest: rest.slice(at) }
  }
}
