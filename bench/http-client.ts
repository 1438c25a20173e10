import { Agent, request } from 'node:http'

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

export interface Answer {
  status: number
  body: string
}

/** One request on a connection that stays open. */
export function send(method: string, url: string, body?: string, headers: Record<string, string> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const out = request(url, { method, agent, headers: { ...length, ...headers } }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body: text }))
      answer.on('error', reject)
    })
    out.on('error', reject)
    out.end(body)
  })
}

/** Opens connections before anything is measured: a server may accept only one new connection in each turn of its event loop. */
export async function connect(url: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => send('GET', url)))
}
