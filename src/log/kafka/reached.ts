/** Waiters for a partition to have been read up to an offset. */
export class Reached {
  readonly #waiting = new Map<number, Set<{ to: bigint; resolve: () => void; reject: (error: unknown) => void }>>()
  readonly #read: (partition: number) => bigint
  #failed: { all?: unknown } = {}
  readonly #stopped = new Map<number, unknown>()

  /** @param read behind what has been read of a partition */
  constructor(read: (partition: number) => bigint) {
    this.#read = read
  }

  /** Resolves once everything before `to` has been read. @throws why the partition is not read on */
  wait(partition: number, to: bigint): Promise<void> {
    if (this.#read(partition) >= to) return Promise.resolve()
    if ('all' in this.#failed) return Promise.reject(this.#failed.all)
    if (this.#stopped.has(partition)) return Promise.reject(this.#stopped.get(partition))
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(partition) ?? new Set()
      this.#waiting.set(partition, waiting.add({ to, resolve, reject }))
    })
  }

  /** A partition was read on. */
  moved(partition: number): void {
    const waiting = this.#waiting.get(partition)
    if (!waiting) return
    const read = this.#read(partition)
    for (const waiter of waiting)
      if (waiter.to <= read) {
        waiting.delete(waiter)
        waiter.resolve()
      }
  }

  /** A partition is not read on. */
  stop(partition: number, error: unknown): void {
    this.#stopped.set(partition, error)
    for (const waiter of this.#waiting.get(partition) ?? []) waiter.reject(error)
    this.#waiting.delete(partition)
  }

  /** Why a partition is not read on, if it is not. */
  stopOf(partition: number): unknown {
    return this.#stopped.get(partition)
  }

  /** Nothing is read any more. */
  close(error: unknown): void {
    this.#failed = { all: error }
    for (const waiting of this.#waiting.values()) for (const waiter of waiting) waiter.reject(error)
    this.#waiting.clear()
  }
}
