import { stripVTControlCharacters, styleText } from 'node:util'
import type { Check, Facts } from './checks.ts'
import { short, type TimelineEntry } from './notes.ts'
import type { Moment, Narrator } from './story.ts'

type Style = Parameters<typeof styleText>[0]

const paint = (style: Style, words: string): string => styleText(style, words, { stream: process.stdout })
const print = (words = ''): void => void process.stdout.write(`${words}\n`)
const width = (): number => Math.min(Math.max(process.stdout.columns || 110, 72), 120)
const clip = (words: string, room: number): string => (words.length > room ? `${words.slice(0, Math.max(0, room - 1))}…` : words)

/** Tells the story as it happens, or nothing. */
export function narrate(aloud: boolean): Narrator {
  let chapter = 0
  if (!aloud) return { headline() {}, line() {} }
  return {
    headline(words) {
      print(`${chapter === 0 ? '\n' : ''}${paint('cyan', ` ${++chapter} `)} ${paint('bold', clip(words, width() - 4))}`)
    },
    line(words) {
      print(
        chapter === 0
          ? `${paint('bold', 'threadlog demo')}  ${words}`
          : `     ${paint(words.startsWith('kill') ? 'red' : 'dim', words)}`,
      )
    },
  }
}

/** Prints what the log holds. */
export function report(facts: Facts & { checks: Check[]; seconds: number; dir: string | null }): void {
  section(`Timeline: ${facts.timeline.length} events by version, commits in brackets, seconds from the first`)
  const start = facts.timeline[0]?.time ?? 0
  for (const line of withMoments(facts.timeline, facts.kills, start)) print(line)
  section('Effects: what the tools did to the world')
  table(facts.effects.map(({ tool, order, key, pid }) => [tool, `order ${order}`, `key ${short(key)}`, `process ${pid}`]))
  section('Receipts: one for each result')
  table(
    facts.receipts.map(({ verdict, provider, result_id, source }) => [
      coloured(verdict),
      provider,
      result_id.startsWith(`${source}:`) ? '' : result_id,
      source,
    ]),
  )
  section('Checkpoints: safe boundaries, published')
  table(
    facts.checkpoints.map((c) => [
      `version ${c.version}`,
      c.status,
      c.waits > 0 ? `${c.waits} wait` : '',
      `state ${short(c.state_digest)}`,
    ]),
  )
  section('Answer')
  print(`   ${String(facts.result.output ?? JSON.stringify(facts.result.failure))}`)
  section('Verified')
  const claims = facts.checks.map(({ claim, ok }) => `${ok ? paint('green', '✓') : paint('red', '✗')} ${claim}`)
  const half = Math.ceil(claims.length / 2)
  if (facts.verify.command?.ok === false) print(`   ${facts.verify.command.output}`)
  table(claims.slice(0, half).map((claim, i) => [claim, claims[half + i] ?? '']))
  print(`\n${paint('dim', `${facts.seconds.toFixed(1)} s${facts.dir ? `, kept in ${facts.dir}` : ''}`)}`)
}

const section = (title: string): void => print(`\n${paint('bold', title)}`)

const VERDICTS: Record<string, Style> = { accepted: 'green', duplicate: 'yellow', conflict: 'red' }
const coloured = (verdict: string): string => paint(VERDICTS[verdict] ?? 'dim', verdict)

function* withMoments(entries: readonly TimelineEntry[], moments: readonly Moment[], start: number): Generator<string> {
  const left = [...moments]
  for (const [i, entry] of entries.entries()) {
    while (left[0] && left[0].time <= entry.time) yield rule((left.shift() as Moment).what)
    yield entryLine(entry, bracket(entries, i), start)
  }
}

const rule = (words: string): string => paint('red', `   ── ${words} ${'─'.repeat(Math.max(0, width() - words.length - 7))}`)

function bracket(entries: readonly TimelineEntry[], i: number): string {
  const same = (j: number) => entries[j]?.commit === entries[i]?.commit
  if (same(i - 1)) return same(i + 1) ? '│' : '└'
  return same(i + 1) ? '┌' : ' '
}

function entryLine({ version, time, type, note }: TimelineEntry, gutter: string, start: number): string {
  const seconds = ((time - start) / 1000).toFixed(2).padStart(6)
  const room = width() - 43
  return `${String(version).padStart(5)} ${paint('dim', gutter)} ${paint('dim', seconds)}  ${type.padEnd(23)}  ${paint('dim', clip(note, room))}`
}

/** Columns as wide as their widest cell; colours have no width. */
function table(rows: readonly string[][]): void {
  const plain = (cell: string): number => stripVTControlCharacters(cell).length
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => plain(row[i] ?? ''))))
  for (const row of rows)
    print(`   ${row.map((cell, i) => cell + ' '.repeat((widths[i] ?? 0) - plain(cell))).join('  ')}`.trimEnd())
}
