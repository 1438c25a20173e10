/** Items from many, taken by one, in order. */
export class Queue<T> {
  readonly #items: T[] = []
  #ended = false
  #wake = () => {}

  push(item: T): void {
    this.#items.push(item)
    this.#wake()
  }

  end(): void {
    this.#ended = true
    this.#wake()
  }

  /** The next item, when there is one; undefined behind the last. */
  async next(): Promise<T | undefined> {
    while (this.#items.length === 0) {
      if (this.#ended) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#items.shift()
  }
}
