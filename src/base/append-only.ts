/**
 * A list whose versions share one array: `push` costs O(1) and leaves every earlier version as it was (design §9 "history is an
 * append-only array shared by all versions of a state"). Pushing onto an old version copies, so folds may branch.
 */
export class AppendList<T> implements Iterable<T> {
  readonly #items: T[]
  readonly length: number

  private constructor(items: T[], length: number) {
    this.#items = items
    this.length = length
  }

  static of<T>(items: Iterable<T> = []): AppendList<T> {
    const copy = [...items]
    return new AppendList(copy, copy.length)
  }

  push(item: T): AppendList<T> {
    // An empty list is often a constant: what is pushed onto it must not keep to it.
    const shared = this.length > 0 && this.#items.length === this.length
    const items = shared ? this.#items : this.#items.slice(0, this.length)
    items.push(item)
    return new AppendList(items, this.length + 1)
  }

  at(index: number): T | undefined {
    const i = index < 0 ? this.length + index : index
    return i >= 0 && i < this.length ? this.#items[i] : undefined
  }

  /** As `Array.prototype.slice`: negative positions count from the end of this version. */
  slice(from = 0, to = this.length): T[] {
    const start = from < 0 ? Math.max(0, this.length + from) : from
    return this.#items.slice(start, Math.max(0, to < 0 ? this.length + to : Math.min(to, this.length)))
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.length; i++) yield this.#items[i] as T
  }
}

/** A map of facts that never change once set, with the sharing of {@link AppendList}. Setting a key twice keeps the first value. */
export class AppendMap<V> implements Iterable<readonly [string, V]> {
  readonly #index: Map<string, number>
  readonly #list: AppendList<readonly [string, V]>

  private constructor(index: Map<string, number>, list: AppendList<readonly [string, V]>) {
    this.#index = index
    this.#list = list
  }

  static of<V>(entries: Iterable<readonly [string, V]> = []): AppendMap<V> {
    let map = new AppendMap<V>(new Map(), AppendList.of())
    for (const [key, value] of entries) map = map.set(key, value)
    return map
  }

  get size(): number {
    return this.#list.length
  }

  get(key: string): V | undefined {
    const i = this.#index.get(key)
    return i === undefined ? undefined : this.#list.at(i)?.[1]
  }

  has(key: string): boolean {
    const i = this.#index.get(key)
    return i !== undefined && i < this.#list.length
  }

  set(key: string, value: V): AppendMap<V> {
    if (this.has(key)) return this
    const shared = this.size > 0 && this.#index.size === this.size
    const index = shared ? this.#index : new Map([...this.#list].map(([k], i) => [k, i]))
    index.set(key, this.#list.length)
    return new AppendMap(index, this.#list.push([key, value]))
  }

  [Symbol.iterator](): Iterator<readonly [string, V]> {
    return this.#list[Symbol.iterator]()
  }
}
