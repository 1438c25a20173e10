// The imports of a TypeScript file, read without a parser: TypeScript 7 has none to call, and the grammar of imports is small.

/** What a file imports, each name once: static, re-exported, side-effect, dynamic, type and `require` forms. Computed names are not seen. */
export function importsOf(source: string): string[] {
  const { code, strings } = withoutComments(source)
  const found = new Set<string>()
  for (const match of code.matchAll(IMPORT)) found.add(strings[Number(match[1] ?? match[2])]!)
  return [...found]
}

/** Over code in which `"n"` is the n-th string. `from "n"` is only ever an import or a re-export; `a.from("n")` is a call. */
const IMPORT = /(?<![.\w$#])(?:(?:from|import)\s*"(\d+)"|(?:import|require|import\.meta\.resolve)\s*\(\s*"(\d+)")/g

/** The source without comments, template text and regular expressions; the n-th string literal stands as `"n"`. */
function withoutComments(source: string): { code: string; strings: string[] } {
  const strings: string[] = []
  // Braces open inside each `${`; the last entry is the innermost template.
  const templates: number[] = []
  let code = ''
  let at = 0
  const template = () => {
    while (at < source.length) {
      if (source[at] === '\\') at += 2
      else if (source[at] === '`') return void at++
      else if (source.startsWith('${', at)) {
        at += 2
        return void templates.push(0)
      } else at++
    }
  }
  while (at < source.length) {
    const char = source[at]!
    if (source.startsWith('//', at)) at = until(source, '\n', at)
    else if (source.startsWith('/*', at)) at = until(source, '*/', at + 2) + 2
    else if (char === "'" || char === '"') {
      const end = quoteEnd(source, at)
      strings.push(source.slice(at + 1, end))
      code += `"${strings.length - 1}"`
      at = end + 1
    } else if (char === '/' && regexMayStand(code)) {
      at = regexEnd(source, at)
      code += ' 0 '
    } else if (char === '`') {
      code += ' 0 '
      at++
      template()
    } else if (char === '}' && templates.at(-1) === 0) {
      templates.pop()
      at++
      template()
    } else {
      if (templates.length > 0) templates[templates.length - 1]! += char === '{' ? 1 : char === '}' ? -1 : 0
      code += char
      at++
    }
  }
  return { code, strings }
}

function until(source: string, what: string, from: number): number {
  const found = source.indexOf(what, from)
  return found < 0 ? source.length : found
}

function quoteEnd(source: string, start: number): number {
  let at = start + 1
  while (at < source.length && source[at] !== source[start] && source[at] !== '\n') at += source[at] === '\\' ? 2 : 1
  return at
}

function regexEnd(source: string, start: number): number {
  let inClass = false
  for (let at = start + 1; at < source.length; at++) {
    const char = source[at]
    if (char === '\\') at++
    else if (char === '[') inClass = true
    else if (char === ']') inClass = false
    else if (char === '\n' || (char === '/' && !inClass)) return at + 1
  }
  return source.length
}

/** A slash divides after a value and begins a regular expression elsewhere. */
function regexMayStand(before: string): boolean {
  const word = /([\w$]+)\s*$/.exec(before)?.[1]
  if (word) return /^(return|typeof|case|in|of|do|else|void|delete|throw|new|await|yield)$/.test(word)
  return !/[)\]}"]\s*$/.test(before)
}
