import { createHash } from 'node:crypto'

/** A stream of choices that follows from its seed alone (sfc32). */
export class Random {
  #a: number
  #b: number
  #c: number
  #count = 1

  constructor(seed: string) {
    const bytes = createHash('sha256').update(seed).digest()
    this.#a = bytes.readUInt32LE(0)
    this.#b = bytes.readUInt32LE(4)
    this.#c = bytes.readUInt32LE(8)
  }

  /** 32 random bits. */
  bits(): number {
    const t = (this.#a + this.#b + this.#count++) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t
    return t >>> 0
  }

  /** A whole number from 0 to `end` − 1. */
  below(end: number): number {
    return Math.floor((this.bits() / 4_294_967_296) * end)
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  /** True once in `n` times. */
  once(n: number): boolean {
    return this.below(n) === 0
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  /** One of the makers, called. */
  any<T>(...makers: (() => T)[]): T {
    return this.pick(makers)()
  }

  /** `least` to `most` of what `make` makes. */
  list<T>(least: number, most: number, make: (i: number) => T): T[] {
    return Array.from({ length: this.between(least, most) }, (_, i) => make(i))
  }

  /** Bytes as text of one character a byte. */
  bytes(length: number): string {
    return String.fromCharCode(...Array.from({ length }, () => this.below(256)))
  }

  /** A small number mostly, a large one at times. */
  size(most: number): number {
    return this.once(8) ? this.below(most + 1) : this.below(Math.min(most, 8) + 1)
  }
}
