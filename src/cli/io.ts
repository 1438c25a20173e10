import { styleText } from 'node:util'

/** Standard output and error of one command. A reader that has gone is no error: what is written after that is dropped. */
export class Io {
  readonly #gone = new AbortController()
  #color: 'auto' | 'always' | 'never' = 'auto'

  constructor() {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_DESTROYED') throw error
      this.#gone.abort()
    })
    process.stderr.on('error', () => {})
  }

  /** Aborts when nobody reads standard output any more. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  set color(when: 'auto' | 'always' | 'never') {
    this.#color = when
  }

  /** Styles text meant for standard output, as terminal, `NO_COLOR`, `FORCE_COLOR` and `--color` allow. */
  paint = (style: string, text: string): string => {
    if (this.#color === 'never') return text
    const format = style as Parameters<typeof styleText>[0]
    return styleText(format, text, { stream: process.stdout, validateStream: this.#color === 'auto' })
  }

  /** Writes to standard output. Resolves when there is room for more. */
  async write(text: string): Promise<void> {
    if (this.gone.aborted || process.stdout.write(text)) return
    await new Promise<void>((resolve) => {
      const done = () => {
        process.stdout.off('drain', done)
        this.gone.removeEventListener('abort', done)
        resolve()
      }
      process.stdout.on('drain', done)
      this.gone.addEventListener('abort', done)
    })
  }

  /** One line of standard error: everything that is not the result. */
  note(text: string): void {
    process.stderr.write(`${text}\n`)
  }

  /** Resolves when everything written has left this process. */
  async flush(): Promise<void> {
    const flushed = (stream: NodeJS.WriteStream) => new Promise<void>((resolve) => void stream.write('', () => resolve()))
    if (!this.gone.aborted)
      await Promise.race([flushed(process.stdout), new Promise((resolve) => this.gone.addEventListener('abort', resolve))])
    await flushed(process.stderr)
  }
}

/** True where a person can be asked. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** All of standard input. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
