/** Invisible or acting code points: controls, bidirectional and zero-width ones, separators, private use, lone surrogates. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu
/** An emoji is drawn in colour or not: harmless, and common. */
const VARIANTS = new Set(['\u{fe0e}', '\u{fe0f}'])
const NAMED: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const hexOf = (char: string): string => (char.codePointAt(0) as number).toString(16)

/**
 * Text of others as one line that does nothing but be read: what would move the cursor, turn the reading direction, set the title or hide
 * itself stands there by its number, as in `\u{1b}`.
 */
export const visible = (text: string): string =>
  text.replace(HIDDEN, (char) => (VARIANTS.has(char) ? char : (NAMED[char] ?? `\\u{${hexOf(char)}}`)))

/** As {@link visible}, for text of several lines: line feeds and tabs stay. */
export const visibleLines = (text: string): string =>
  text.replace(HIDDEN, (char) => (char === '\n' || char === '\t' ? char : visible(char)))

/** JSON text of the same value without a hidden character: they are escaped as JSON allows. One line, or indented. */
export const visibleJson = (value: unknown, indent = 0): string => visibleJsonText(JSON.stringify(value, null, indent))

/** JSON text with what is hidden escaped; line feeds can only stand between values. */
export const visibleJsonText = (json: string): string =>
  json.replace(HIDDEN, (char) => (char === '\n' || VARIANTS.has(char) ? char : unitsOf(char)))

const unitsOf = (char: string): string =>
  Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')

/** The first `limit` characters, with `…` when there is more. */
export function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text
  const characters = [...text]
  return characters.length <= limit ? text : `${characters.slice(0, limit).join('')}…`
}
