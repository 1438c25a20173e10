// V8 13.6 (Node 24) can read an escaped object key as another key. While parsing it guesses the next key from objects seen before and
// compares the guess with the raw text, escapes included: once `{"a":1,"\\":0}` was parsed anywhere in the process, `{"a":1,"\n":0}`
// comes back with the key `\`. So texts with an escape in a key are parsed under stand-in keys without one.

export type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown

/**
 * `JSON.parse`, right about escaped keys whatever was parsed before. Costs one native search when the text holds no backslash.
 * @throws SyntaxError whose message quotes the text
 */
export function jsonParse(text: string, reviver?: Reviver): unknown {
  const keys = escapedKeys(text)
  if (keys.length === 0) return JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1])

  const mark = unusedMark(text)
  const standIns = new Map<string, string>()
  const names = new Map<string, string>()
  let safe = ''
  let done = 0
  for (const { start, end } of keys) {
    const token = text.slice(start, end)
    let standIn = standIns.get(token)
    if (standIn === undefined) {
      standIn = `${mark}${standIns.size}`
      standIns.set(token, standIn)
      names.set(standIn, JSON.parse(token) as string)
    }
    safe += `${text.slice(done, start)}"${standIn}"`
    done = end
  }
  safe += text.slice(done)
  const named: Reviver = function (key, value, context) {
    const renamed = rename(value, names)
    return reviver ? reviver.call(this, names.get(key) ?? key, renamed, context) : renamed
  }
  return JSON.parse(safe, named as Parameters<typeof JSON.parse>[1])
}

/** Positions of key strings (quotes included) that hold a backslash. */
function escapedKeys(text: string): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = []
  for (let at = text.indexOf('\\'); at !== -1; ) {
    // The first backslash of a string: the quote before it opens the string.
    const start = text.lastIndexOf('"', at)
    const end = closingQuote(text, at)
    let next = end + 1
    while (isSpace(text.charCodeAt(next))) next++
    if (start !== -1 && text.charCodeAt(next) === 0x3a) found.push({ start, end: end + 1 })
    at = text.indexOf('\\', end + 1)
  }
  return found
}

function closingQuote(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return end
  }
  return text.length
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** A private-use text that no key of `text` can begin with. */
function unusedMark(text: string): string {
  let longest = 0
  for (const run of text.matchAll(/\ue000+/g)) longest = Math.max(longest, run[0].length)
  return '\ue000'.repeat(longest + 1)
}

function rename(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value)
  if (!entries.some(([key]) => names.has(key))) return value
  return Object.fromEntries(entries.map(([key, item]) => [names.get(key) ?? key, item]))
}
