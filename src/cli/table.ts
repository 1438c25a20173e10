import { visible } from './visible.ts'

/** A column: heading, and the text of one row. Put wide ones last; the last is not padded. */
export interface Column<T> {
  readonly name: string
  readonly text: (row: T) => string
  /** Right-aligned, for counts. */
  readonly right?: boolean
  /** Style names of the cell, for terminals with colour. */
  readonly style?: (row: T) => string | undefined
}

type Paint = (style: string, text: string) => string

/** Lines of a table, the headings first. Cells are made visible and padded by code points. */
export function tableLines<T>(columns: readonly Column<T>[], rows: readonly T[], paint: Paint = (_, text) => text): string[] {
  const cells = rows.map((row) => columns.map((column) => visible(column.text(row))))
  const widths = columns.map((column, i) => Math.max(column.name.length, ...cells.map((line) => width(line[i] as string))))
  const last = columns.length - 1
  const line = (texts: readonly string[], style: (i: number) => string | undefined): string =>
    texts
      .map((text, i) => {
        const gap = ' '.repeat((widths[i] as number) - width(text))
        const painted = paintedText(text, style(i))
        return columns[i]?.right ? gap + painted : i === last ? painted : painted + gap
      })
      .join('  ')
      .trimEnd()
  const paintedText = (text: string, style: string | undefined) =>
    style === undefined || text === '' ? text : paint(style, text)
  return [
    line(
      columns.map((column) => column.name),
      () => 'dim',
    ),
    ...cells.map((texts, row) => line(texts, (i) => columns[i]?.style?.(rows[row] as T))),
  ]
}

const width = (text: string): number => [...text].length

const STYLES: Record<string, string> = {
  ...Object.fromEntries(['completed', 'accepted', 'success', 'duplicate', 'ok', 'approved'].map((word) => [word, 'green'])),
  ...Object.fromEntries(
    ['failed', 'denied', 'unknown', 'conflict', 'quarantined', 'damaged', 'forbidden'].map((word) => [word, 'red']),
  ),
  ...Object.fromEntries(
    ['waiting', 'suspended', 'pending', 'running', 'requested', 'resolved', 'retried'].map((word) => [word, 'yellow']),
  ),
}

/** The colour of an outcome, by its first word. */
export const outcomeStyle = (outcome: string): string | undefined => STYLES[outcome.split(/[ :]/, 1)[0] as string]
