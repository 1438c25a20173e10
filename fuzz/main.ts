// Feeds hostile input to every border of threadlog and reports what it does with it.
//   npm run fuzz -- [border …] [--seconds 60] [--seed S]
//   npm run fuzz -- --replay fuzz/found/<file>.json
import { parseArgs } from 'node:util'
import { borders } from './borders.ts'
import { type Border, Fault } from './kit/border.ts'
import { keep, kept } from './kit/keep.ts'
import { alone } from './kit/minimise.ts'
import type { Report } from './kit/run.ts'
import { watch } from './kit/watch.ts'

const HELP = `npm run fuzz -- [border …] [--seconds 60] [--seed S] [--replay FILE]

${borders()
  .map(({ name, about }) => `  ${name.padEnd(10)}${about}`)
  .join('\n')}

Exit code 1 when a promise was broken: each input that broke one is kept in fuzz/found.`

/** @returns the exit code */
export async function main(args: readonly string[], print: (line: string) => void = console.log): Promise<number> {
  const options = {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    replay: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  } as const
  let given: ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>
  try {
    given = parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    print(`${(error as Error).message}\n\n${HELP}`)
    return 2
  }
  const { values, positionals } = given
  const unknown = positionals.filter((name) => !borders().some((border) => border.name === name))
  const seconds = Number(values.seconds)
  if (values.help || unknown.length > 0 || !(seconds > 0)) {
    print(unknown.length > 0 ? `no such border: ${unknown.join(', ')}\n\n${HELP}` : HELP)
    return values.help ? 0 : 2
  }
  if (values.replay !== undefined) return replay(values.replay, print)
  const seed = values.seed ?? String(Date.now())
  const chosen = borders().filter(({ name }) => positionals.length === 0 || positionals.includes(name))
  let broken = 0
  for (const border of chosen) {
    const report = await watch(border, seed, seconds * 1_000)
    broken += report.found.length
    for (const line of values.json ? [JSON.stringify(report)] : lines(report)) print(line)
  }
  return broken > 0 ? 1 : 0
}

async function replay(file: string, print: (line: string) => void): Promise<number> {
  const found = kept(file)
  const border = borders().find(({ name }) => name === found.border) as Border
  const result = await alone(border, found.input)
  if (!(result instanceof Fault)) {
    print(`holds: ${result.accepted ? 'accepted' : 'refused'} (${result.code})`)
    return 0
  }
  print(`${result.kind}: ${result.what}\n${result.more}`)
  return 1
}

function lines(report: Report): string[] {
  const { border, seed, cases, accepted, ms, slowest, found } = report
  const by = (codes: Record<string, number>) =>
    Object.entries(codes)
      .sort(([, a], [, b]) => b - a)
      .map(([code, count]) => `${code} ${count}`)
      .join(', ') || 'none'
  return [
    `${border}: ${cases} cases in ${(ms / 1_000).toFixed(1)} s, seed ${seed}, slowest ${slowest.ms} ms (case ${slowest.case})`,
    `  accepted ${accepted}: ${by(report.taken)}`,
    `  refused ${Object.values(report.refused).reduce((a, b) => a + b, 0)}: ${by(report.refused)}`,
    `  found ${found.length}`,
    ...found.flatMap((each) => [
      `    ${each.kind}: ${each.what} (${each.count}, first in case ${each.case}${each.alone ? '' : ', not alone'})`,
      `      ${keep(each)}`,
    ]),
  ]
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2))
