import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { Payload } from '../../src/base/index.ts'
import { wantsJson, withDashedIds } from '../../src/cli/arguments.ts'
import { durationText, parseDuration, parseSince, sizeText, timeText } from '../../src/cli/format.ts'
import { LineText } from '../../src/cli/line-text.ts'
import { fieldsJson, payloadText } from '../../src/cli/payloads.ts'
import { parseThreadName } from '../../src/cli/references.ts'
import { tableLines } from '../../src/cli/table.ts'
import { parseVersion } from '../../src/cli/versions.ts'
import { shorten, visible, visibleJson, visibleLines } from '../../src/cli/visible.ts'

const ACTING = '\u001b[2J\u0007\u0000\r\u009b\u202e\u2066\u200b\u2028\ufeff\u00ad\u{e0041}\ud800'

describe('visible text', () => {
  test('shows what acts or hides by its number, and leaves the rest', () => {
    expect(visible(`a${ACTING}\tb\n`)).toBe(
      'a\\u{1b}[2J\\u{7}\\u{0}\\r\\u{9b}\\u{202e}\\u{2066}\\u{200b}\\u{2028}\\u{feff}\\u{ad}\\u{e0041}\\u{d800}\\tb\\n',
    )
    expect(visible('größe 漢字 😀 ❤️ עברית')).toBe('größe 漢字 😀 ❤️ עברית')
    expect(visibleLines('a\n\tb\u001bc')).toBe('a\n\tb\\u{1b}c')
  })

  test('as JSON is the same value', () => {
    const value = { [ACTING]: [ACTING, '❤️'] }
    expect(JSON.parse(visibleJson(value))).toEqual(value)
    expect(JSON.parse(visibleJson(value, 2))).toEqual(value)
    expect(visibleJson(value)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u)
  })

  test('is cut at characters', () => {
    expect(shorten('😀😀😀', 2)).toBe('😀😀…')
    expect(shorten('😀😀', 2)).toBe('😀😀')
  })

  test('streams in pieces without splitting characters, and ends its line once', async () => {
    let out = ''
    const line = new LineText(async (text) => void (out += text))
    for (const piece of ['a\ud83d', '\ude00\u001b', 'b']) await line.add(piece)
    await line.end()
    await line.end()
    await line.add('c\n')
    await line.end()
    expect(out).toBe('a😀\\u{1b}b\nc\n')
  })
})

describe('payloads', () => {
  const payload = Payload.of({ text: 'x'.repeat(200) })

  test('are shown as far as asked for', () => {
    expect(payloadText(payload, 'none')).toBe('')
    expect(payloadText(payload, 'preview')).toHaveLength(121)
    expect(payloadText(payload, 'full')).toBe(`{"text":"${'x'.repeat(200)}"}`)
    expect(payloadText(Payload.of('plain'), 'preview')).toBe('plain')
  })

  test('stand in JSON as values, or as what stands for them', () => {
    const form = (how: 'none' | 'preview' | 'full') => fieldsJson({ id: 'a', list: [{ payload }] }, how)
    expect(form('full')).toEqual({ id: 'a', list: [{ payload: payload.value }] })
    const facts = { size: payload.bytes.length, digest: payload.digest }
    expect(form('none')).toEqual({ id: 'a', list: [{ payload: { $payload: facts } }] })
    expect(form('preview')).toMatchObject({
      list: [{ payload: { $payload: { ...facts, preview: expect.stringMatching(/…$/) } } }],
    })
  })
})

describe('times, durations, sizes', () => {
  test('are written shortly', () => {
    expect([0, 850, 2_150, 59_999, 250_000, 3_600_000, 273_600_000].map(durationText)).toEqual([
      '0ms',
      '850ms',
      '2.1s',
      '59.9s',
      '4m 10s',
      '1h',
      '3d 4h',
    ])
    expect([12, 1_234, 5_600_000].map(sizeText)).toEqual(['12 B', '1.2 kB', '5.6 MB'])
    expect(timeText(1_000, 'iso', 0)).toBe('1970-01-01T00:00:01.000Z')
    expect(timeText(1_000, 'relative', 91_000)).toBe('1m 30s ago')
    expect(timeText(91_000, 'relative', 1_000)).toBe('in 1m 30s')
    expect(timeText(1_000, 'local', 0)).toMatch(/^19(69|70)-.*[+-]\d\d:\d\d$/)
    expect(timeText(Number.MAX_SAFE_INTEGER, 'iso', 0)).toBe('+275760-09-13T00:00:00.000Z')
  })

  test('are read', () => {
    expect(['90s', '1h30m', '2d', '500ms', '1.5h'].map(parseDuration)).toEqual([90_000, 5_400_000, 172_800_000, 500, 5_400_000])
    for (const text of ['', '5', 'h', '1w', '1h 30m', '-1h']) expect(() => parseDuration(text)).toThrow('no duration')
    expect(parseSince('1h', 3_600_001)).toBe(1)
    expect(parseSince('1970-01-01T00:00:02Z', 0)).toBe(2_000)
    expect(() => parseSince('1970-99', 0)).toThrow('no time')
  })
})

describe('places', () => {
  test('of a version', () => {
    expect(['12', '-5', '@2026-11-30T12:00:00Z'].map(parseVersion)).toEqual([
      { version: 12 },
      { back: 5 },
      { time: 1_796_040_000_000 },
    ])
    for (const text of ['', 'x', '1.5', '--5', '@soon']) expect(() => parseVersion(text)).toThrow()
  })

  test('of a thread', () => {
    expect(parseThreadName('a%2Fb/u/t', {})).toEqual({ application: 'a/b', user: 'u', thread: 't' })
    expect(parseThreadName('u/t', { app: 'a', user: 'no' })).toEqual({ application: 'a', user: 'u', thread: 't' })
    expect(parseThreadName('t', {})).toEqual({ application: 'default', user: 'default', thread: 't' })
    for (const text of ['', 'a//t', 'a/b/c/d', '%']) expect(() => parseThreadName(text, {})).toThrow()
  })
})

test('a table pads by characters, aligns counts, and makes cells visible', () => {
  const rows = [
    { name: 'ä😀', count: 7, note: 'x\u001b' },
    { name: 'long name', count: 123_456, note: '' },
  ]
  const lines = tableLines(
    [
      { name: 'NAME', text: (row) => row.name },
      { name: 'COUNT', text: (row) => String(row.count), right: true },
      { name: 'NOTE', text: (row) => row.note },
    ],
    rows,
  )
  expect(lines).toEqual(['NAME        COUNT  NOTE', 'ä😀              7  x\\u{1b}', 'long name  123456'])
})

describe('a command line', () => {
  const program = new Command('x').option('-o, --output <format>')
  program.command('wait').argument('<wait>')
  program.command('approve').argument('<wait>').option('--reason <text>').option('--yes')
  program.command('show').argument('<thread>')
  const id = '-bcdefghijklmnopqrstuvwxyz012345'

  test('may name waits that begin with a dash', () => {
    const moved = (...args: string[]) => withDashedIds(program, args)
    expect(moved('wait', id)).toEqual(['wait', '--', id])
    expect(moved('approve', id.slice(0, 9), '--yes', '-o', 'json')).toEqual([
      'approve',
      '--yes',
      '-o',
      'json',
      '--',
      id.slice(0, 9),
    ])
    expect(moved('approve', 'abc', '--reason', id)).toEqual(['approve', 'abc', '--reason', id])
    expect(moved('wait', '-ojson', 'abc')).toEqual(['wait', '-ojson', 'abc'])
    expect(moved('wait', '--', id)).toEqual(['wait', '--', id])
    expect(moved('show', id)).toEqual(['show', id])
  })

  test('says in which form errors are wanted, also when it is wrong', () => {
    for (const args of [['--json'], ['-ojson'], ['-o', 'jsonl'], ['--output=json'], ['--output', 'json']])
      expect(wantsJson(['x', ...args])).toBe(true)
    for (const args of [[], ['json'], ['-o', 'text']]) expect(wantsJson(['x', ...args])).toBe(false)
  })
})
