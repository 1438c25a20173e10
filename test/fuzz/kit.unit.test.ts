import { describe, expect, test } from 'vitest'
import { accepted, type Border, Fault, promise, refused } from '../../fuzz/kit/border.ts'
import { keep, kept } from '../../fuzz/kit/keep.ts'
import { codeOf, MARKER } from '../../fuzz/kit/marker.ts'
import { shorterTexts } from '../../fuzz/kit/minimise.ts'
import { inputOf, type Report, run } from '../../fuzz/kit/run.ts'
import { readStrict, writeSorted } from '../../fuzz/kit/strict-json.ts'
import { main } from '../../fuzz/main.ts'
import { reject } from '../../src/base/index.ts'
import { temporaryFolder } from '../log/support/sqlite-place.ts'

/** A border whose rig does this with each text. */
const borderOf = (work: (text: string) => Promise<void> | void, more: Partial<Border<string>> = {}): Border<string> => ({
  name: 'planted',
  about: '',
  limitMs: 100,
  open: async () => ({
    async try(text) {
      await work(text)
      return text.length % 2 === 0 ? accepted() : refused('odd')
    },
    close: async () => {},
  }),
  generate: (random) => String.fromCharCode(...random.list(0, 20, () => random.between(97, 122))),
  simpler: shorterTexts,
  ...more,
})

const ran = (border: Border<string>, minimiseMs = 0): Promise<Report> =>
  run(border, { seed: 's', ms: 5_000, cases: 60, minimiseMs })
const kinds = (report: Report): string[] => report.found.map(({ kind, what }) => `${kind}: ${what}`)

describe('what is planted is found', () => {
  test('a crash, told by its class, made small, and kept', async () => {
    const report = await ran(
      borderOf((text) => {
        if (text.includes('e')) throw new TypeError(text)
      }),
      1_000,
    )
    expect(report.found).toHaveLength(1)
    const [found] = report.found
    expect(found).toMatchObject({ kind: 'crash', what: expect.stringContaining('TypeError'), input: 'e', alone: true })
    const folder = temporaryFolder()
    expect(kept(keep(found!, folder.path))).toEqual(found)
    folder.remove()
  })

  test('a promise that is never kept, and closing without an end', async () => {
    const hangs = await ran(borderOf((text) => (text.startsWith('a') ? new Promise(() => {}) : undefined)))
    expect(kinds(hangs)).toEqual(['hang: no end within 100 ms'])
    const stays = borderOf(() => {}, {
      open: async () => ({ try: async () => accepted(), close: () => new Promise(() => {}) }),
    })
    expect(kinds(await run(stays, { seed: 's', ms: 10_000, cases: 1, minimiseMs: 0 }))).toEqual(['hang: closing does not end'])
  })

  test('payload in an error, an error without a code, a broken promise', async () => {
    const leaks = borderOf((text) => void codeOf(reject('x_invalid', `Bad: ${text}${MARKER}`), 'x'))
    expect(kinds(await ran(leaks))).toEqual(['leak: payload in the error x_invalid of x'])
    const uncoded = borderOf(() => void codeOf(new RangeError('bad'), 'x'))
    expect(kinds(await ran(uncoded))[0]).toMatch(/^uncoded: x: RangeError/)
    const silent = borderOf((text) => promise(text.length < 15, 'silent', 'a long text was taken'))
    expect((await ran(silent, 2_000)).found[0]?.input).toHaveLength(15)
  })

  test('counts and inputs follow from the seed', async () => {
    const [one, two] = [await ran(borderOf(() => {})), await ran(borderOf(() => {}))]
    expect({ ...one, ms: 0, slowest: 0 }).toEqual({ ...two, ms: 0, slowest: 0 })
    expect(one.cases).toBe(one.accepted + (one.refused['odd'] ?? 0))
    expect(
      inputOf(
        borderOf(() => {}),
        's',
        7,
      ),
    ).toBe(
      inputOf(
        borderOf(() => {}),
        's',
        7,
      ),
    )
  })
})

describe('the reader that judges JSON', () => {
  test.each(['{"a":1,}', '01', '1e309', '9007199254740993', '"\ud800\n"', '\ufeff{}', '[1]x', '{"a" 1}', '["\\x"]', '1.', ''])(
    'refuses %s',
    (text) => expect(readStrict(text)).toBeUndefined(),
  )

  test('sees names that stand twice, whatever they mean to others', () => {
    expect(readStrict('{"a":1,"\\u0061":2}')?.doubled).toBe(true)
    expect(readStrict('{"__proto__":1,"constructor":2}')).toMatchObject({ doubled: false })
    expect(writeSorted(readStrict('{"b":-0,"a":[1.50,"\\u00e9"],"__proto__":{}}')?.tree ?? null)).toBe(
      '{"__proto__":{},"a":[1.5,"é"],"b":0}',
    )
  })
})

test('the command says what it can do, and refuses what it cannot', async () => {
  const lines: string[] = []
  const print = (line: string) => void lines.push(line)
  expect(await main(['--help'], print)).toBe(0)
  for (const border of ['results', 'http', 'views', 'cli', 'state', 'model', 'schemas', 'events', 'database'])
    expect(lines.join('\n')).toContain(`  ${border} `)
  expect(await main(['nothing'], print)).toBe(2)
  expect(await main(['results', '--seconds', 'x'], print)).toBe(2)
  expect(await main(['--nonsense'], print)).toBe(2)
  expect(() => promise(false, 'leak', 'x')).toThrow(Fault)
})
