import { visibleLines } from './visible.ts'

/** Text that comes in pieces: made visible, pieces of one character kept together, and closed with a line feed. */
export class LineText {
  readonly #write: (text: string) => Promise<void>
  #half = ''
  #open = false

  constructor(write: (text: string) => Promise<void>) {
    this.#write = write
  }

  async add(piece: string): Promise<void> {
    const text = this.#half + piece
    const isHalf = /[\ud800-\udbff]$/.test(text)
    this.#half = isHalf ? text.slice(-1) : ''
    const whole = isHalf ? text.slice(0, -1) : text
    if (whole === '') return
    this.#open = !whole.endsWith('\n')
    await this.#write(visibleLines(whole))
  }

  /** Ends the line, if one has begun. */
  async end(): Promise<void> {
    if (this.#half !== '') await this.#write(visibleLines(this.#half))
    if (this.#open || this.#half !== '') await this.#write('\n')
    this.#half = ''
    this.#open = false
  }
}
