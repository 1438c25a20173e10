// A JSON reader of its own, slow and plain: what it says is compared with what the product says. Shares no code with src/.

/** Objects are maps, so that no key means anything. */
export type Tree = null | boolean | number | string | Tree[] | Map<string, Tree>

export interface StrictRead {
  readonly tree: Tree
  /** True when an object names a key twice; the last one counts. */
  readonly doubled: boolean
}

/** The value of a JSON text, or undefined if it is none that may be accepted: syntax, depth, numbers that cannot be kept. */
export function readStrict(text: string, maxDepth = 256): StrictRead | undefined {
  const reader = new Reader(text, maxDepth)
  try {
    const tree = reader.document()
    return { tree, doubled: reader.doubled }
  } catch (error) {
    if (error === NOT_JSON) return undefined
    throw error
  }
}

/** The text of UTF-8 bytes, or undefined. */
export function textOf(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : undefined
}

/** Sorted keys, no spaces, shortest numbers. */
export function writeSorted(tree: Tree): string {
  if (tree instanceof Map) {
    const keys = [...tree.keys()].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    return `{${keys.map((key) => `${JSON.stringify(key)}:${writeSorted(tree.get(key) as Tree)}`).join(',')}}`
  }
  if (Array.isArray(tree)) return `[${tree.map(writeSorted).join(',')}]`
  return JSON.stringify(tree)
}

/** The tree of a live value. */
export function treeOf(value: unknown): Tree {
  if (Array.isArray(value)) return value.map(treeOf)
  if (typeof value === 'object' && value !== null)
    return new Map(Object.keys(value).map((key) => [key, treeOf(Object.getOwnPropertyDescriptor(value, key)?.value)]))
  return value as Tree
}

const NOT_JSON = Symbol('not JSON')
const ESCAPES: Record<string, string> = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

class Reader {
  doubled = false
  #at = 0
  #depth = 0
  readonly #text: string
  readonly #maxDepth: number

  constructor(text: string, maxDepth: number) {
    this.#text = text
    this.#maxDepth = maxDepth
  }

  document(): Tree {
    const tree = this.#value()
    this.#space()
    if (this.#at < this.#text.length) throw NOT_JSON
    return tree
  }

  #value(): Tree {
    this.#space()
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object()
      case '[':
        return this.#array()
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(): Tree {
    const map = new Map<string, Tree>()
    this.#enter()
    if (!this.#takes('}'))
      do {
        this.#space()
        if (this.#text[this.#at] !== '"') throw NOT_JSON
        const key = this.#string()
        if (!this.#takes(':')) throw NOT_JSON
        if (map.has(key)) this.doubled = true
        map.set(key, this.#value())
      } while (this.#more('}'))
    this.#depth--
    return map
  }

  #array(): Tree {
    const list: Tree[] = []
    this.#enter()
    if (!this.#takes(']'))
      do list.push(this.#value())
      while (this.#more(']'))
    this.#depth--
    return list
  }

  #enter(): void {
    this.#at++
    if (++this.#depth > this.#maxDepth) throw NOT_JSON
  }

  #more(end: string): boolean {
    if (this.#takes(',')) return true
    if (this.#takes(end)) return false
    throw NOT_JSON
  }

  #takes(char: string): boolean {
    this.#space()
    if (this.#text[this.#at] !== char) return false
    this.#at++
    return true
  }

  #space(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'x')) this.#at++
  }

  #word(word: string, value: Tree): Tree {
    if (!this.#text.startsWith(word, this.#at)) throw NOT_JSON
    this.#at += word.length
    return value
  }

  #string(): string {
    let out = ''
    for (this.#at++; ; this.#at++) {
      const char = this.#text[this.#at]
      if (char === undefined || char < ' ') throw NOT_JSON
      if (char === '"') break
      out += char === '\\' ? this.#escape() : char
    }
    this.#at++
    return out
  }

  #escape(): string {
    const char = this.#text[++this.#at] ?? ''
    if (char !== 'u') {
      if (!Object.hasOwn(ESCAPES, char)) throw NOT_JSON
      return ESCAPES[char] as string
    }
    const hex = this.#text.slice(this.#at + 1, this.#at + 5)
    if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw NOT_JSON
    this.#at += 4
    return String.fromCharCode(Number.parseInt(hex, 16))
  }

  #number(): number {
    const token = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/.exec(this.#text.slice(this.#at, this.#at + 2_000))?.[0]
    if (token === undefined) throw NOT_JSON
    this.#at += token.length
    const value = Number(token)
    if (Math.abs(value) === Number.POSITIVE_INFINITY) throw NOT_JSON
    const whole = value % 1 === 0 && Math.abs(value) > 9_007_199_254_740_991
    if (whole && (Math.abs(value) < 1e21 || !/e/i.test(token))) throw NOT_JSON
    return value === 0 ? 0 : value
  }
}
