/** Random numbers that are the same for the same seed on every machine (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    // Neighbouring seeds must not give neighbouring sequences.
    this.#state = Math.imul(seed ^ (seed >>> 16), 0x21f0aaad) ^ 0x5bd1e995
  }

  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number {
    let t = (this.#state = (this.#state + 0x6d2b79f5) | 0)
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * limit)
  }

  /** True `percent` times in a hundred. */
  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  /** One of `items`, which must not be empty. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
}

/** Things to choose from, each with how often it is chosen in relation to the others. */
export class Weighted<T> {
  readonly #items: readonly (readonly [T, number])[]
  readonly #sum: number

  constructor(items: readonly (readonly [T, number])[]) {
    this.#items = items
    this.#sum = items.reduce((sum, [, weight]) => sum + weight, 0)
  }

  pick(random: Random): T {
    let left = random.below(this.#sum)
    for (const [item, weight] of this.#items) {
      left -= weight
      if (left < 0) return item
    }
    throw new RangeError('Nothing to choose from.')
  }
}
