/**
 * A list whose versions share one array: `push` costs O(1) and leaves every earlier version as it was (design §9 "history is an
 * append-only array shared by all versions of a state"). Pushing onto an old version copies, so folds may branch; a branch that is
 * thrown away again is cheaper begun with {@link AppendList.fork}.
 */
export class AppendList<T> implements Iterable<T> {
  readonly #items: T[]
  /** How many of `#items` belong to this version. */
  readonly #base: number
  /** What a fork has added; undefined on the main line. */
  readonly #tail: readonly T[] | undefined
  readonly length: number

  private constructor(items: T[], base: number, tail?: readonly T[]) {
    this.#items = items
    this.#base = base
    this.#tail = tail
    this.length = base + (tail?.length ?? 0)
  }

  static of<T>(items: Iterable<T> = []): AppendList<T> {
    const copy = [...items]
    return new AppendList(copy, copy.length)
  }

  /** The array whose first `sharedLength` items this version begins with: key of what is remembered about them. */
  get shared(): object {
    return this.#items
  }

  get sharedLength(): number {
    return this.#base
  }

  /** The same list; what is pushed onto it, or its descendants, stays out of the shared array. For a few items: each push copies them. */
  fork(): AppendList<T> {
    return this.#tail ? this : new AppendList(this.#items, this.#base, [])
  }

  /** The main line that a fork began on. */
  trunk(): AppendList<T> {
    return this.#tail ? new AppendList(this.#items, this.#base) : this
  }

  /** The same list on the main line: what a fork has added goes into the shared array, or into a copy if others have pushed meanwhile. */
  landed(): AppendList<T> {
    let list = this.trunk()
    for (const item of this.#tail ?? []) list = list.push(item)
    return list
  }

  push(item: T): AppendList<T> {
    if (this.#tail) return new AppendList(this.#items, this.#base, [...this.#tail, item])
    // An empty list is often a constant: what is pushed onto it must not keep to it.
    const shared = this.length > 0 && this.#items.length === this.length
    const items = shared ? this.#items : this.#items.slice(0, this.length)
    items.push(item)
    return new AppendList(items, this.length + 1)
  }

  at(index: number): T | undefined {
    const i = index < 0 ? this.length + index : index
    if (i < 0 || i >= this.length) return undefined
    return i < this.#base ? this.#items[i] : this.#tail?.[i - this.#base]
  }

  /** As `Array.prototype.slice`: negative positions count from the end of this version. */
  slice(from = 0, to = this.length): T[] {
    const start = from < 0 ? Math.max(0, this.length + from) : from
    const end = Math.max(0, to < 0 ? this.length + to : Math.min(to, this.length))
    const own = this.#items.slice(start, Math.min(end, this.#base))
    if (!this.#tail || end <= this.#base) return own
    return [...own, ...this.#tail.slice(Math.max(0, start - this.#base), end - this.#base)]
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#base; i++) yield this.#items[i] as T
    if (this.#tail) yield* this.#tail
  }
}

/** A map of facts that never change once set, with the sharing of {@link AppendList}. Setting a key twice keeps the first value. */
export class AppendMap<V> implements Iterable<readonly [string, V]> {
  readonly #index: Map<string, number>
  readonly #list: AppendList<readonly [string, V]>
  /** Keys a fork has added; undefined on the main line. */
  readonly #added: ReadonlyMap<string, V> | undefined

  private constructor(index: Map<string, number>, list: AppendList<readonly [string, V]>, added?: ReadonlyMap<string, V>) {
    this.#index = index
    this.#list = list
    this.#added = added
  }

  static of<V>(entries: Iterable<readonly [string, V]> = []): AppendMap<V> {
    let map = new AppendMap<V>(new Map(), AppendList.of())
    for (const [key, value] of entries) map = map.set(key, value)
    return map
  }

  /** As {@link AppendList.fork}. */
  fork(): AppendMap<V> {
    return this.#added ? this : new AppendMap(this.#index, this.#list.fork(), new Map())
  }

  /** As {@link AppendList.landed}. */
  landed(): AppendMap<V> {
    if (!this.#added) return this
    let map = new AppendMap<V>(this.#index, this.#list.trunk())
    for (const [key, value] of this.#added) map = map.set(key, value)
    return map
  }

  get size(): number {
    return this.#list.length
  }

  get(key: string): V | undefined {
    if (this.#added?.has(key)) return this.#added.get(key)
    const i = this.#index.get(key)
    return i === undefined || i >= this.#shared ? undefined : this.#list.at(i)?.[1]
  }

  has(key: string): boolean {
    if (this.#added?.has(key)) return true
    const i = this.#index.get(key)
    return i !== undefined && i < this.#shared
  }

  /** The fact that was set last. */
  get last(): readonly [string, V] | undefined {
    return this.#list.at(-1)
  }

  /** Facts that the shared index may speak of. */
  get #shared(): number {
    return this.size - (this.#added?.size ?? 0)
  }

  set(key: string, value: V): AppendMap<V> {
    if (this.has(key)) return this
    if (this.#added) return new AppendMap(this.#index, this.#list.push([key, value]), new Map(this.#added).set(key, value))
    const shared = this.size > 0 && this.#index.size === this.size
    const index = shared ? this.#index : new Map([...this.#list].map(([k], i) => [k, i]))
    index.set(key, this.#list.length)
    return new AppendMap(index, this.#list.push([key, value]))
  }

  [Symbol.iterator](): Iterator<readonly [string, V]> {
    return this.#list[Symbol.iterator]()
  }
}
