import { jsonText, strangeText } from '../kit/json-text.ts'
import { MARKER } from '../kit/marker.ts'
import type { Random } from '../kit/random.ts'

/** A command line. `@log@`, `@module@` and places like `@3.id@` stand for what differs from run to run. */
export interface CliCase {
  args: string[]
  /** True: as a process of its own. */
  process: boolean
}

type Values = (random: Random) => string

const word: Values = (random) =>
  random.pick([
    'x',
    '',
    ' ',
    'a b',
    '-x',
    '--',
    'é',
    '%',
    '%zz',
    '%00',
    '../x',
    '@nowhere',
    '-',
    'null',
    '__proto__',
    '\u001b[2J',
    '\u202e',
    'x'.repeat(3_000),
  ])
const or =
  (n: number, good: readonly string[]): Values =>
  (random) =>
    random.once(n) ? word(random) : random.pick(good)

const thread: Values = or(4, [
  'shop/default/thread_work',
  'default/thread_work',
  'thread_0',
  'thread_1',
  'thread_2',
  '@stream@',
  '@prefix@',
  '@prefix@0',
  'new',
  'thread_none',
  'a/b/c/d',
  '/',
  'shop//thread_0',
  'thread%5F0',
  'shop%2Fdefault%2Fthread_0',
  '00000000',
  '0'.repeat(64),
])
const wait: Values = or(8, [
  '@0.id@',
  '@1.id@',
  '@2.id@',
  '@2.id@',
  '@5.id@',
  '@8.id@',
  '@0.short@',
  '@2.short@',
  'w',
  '--------',
  `-${'a'.repeat(31)}`,
])
const version = or(6, [
  '1',
  '5',
  '0',
  '-1',
  '-0',
  '-5',
  '99999999',
  '999999999999999',
  '9999999999999999',
  '@2026-01-01',
  '@2100-01-01T00:00:00Z',
  '@x',
  '@',
  '1e3',
  '+1',
  ' 1',
])
const duration = or(6, [
  '30d',
  '1ms',
  '10ms',
  '0s',
  '1s',
  '-1s',
  '1.5h',
  '1h30m',
  '99999999d',
  '99999999999999999999d',
  `${'9'.repeat(400)}d`,
  'NaN',
  '1e3s',
  '1',
  '0.0000001ms',
])
const since = or(6, [
  '1h',
  '7d',
  '2026-01-01',
  '2026-01-01T00:00:00Z',
  '2026-99-99',
  '0000-01',
  '9999-12-31T23:59:59.999Z',
  '99999999999999999999d',
  '2026-',
])
const limit = or(6, ['1', '2', '50', '0', '-1', '1.5', '999999999999999', '1000000000000000', '01', '١'])
const name = or(4, ['shop', 'default', 'payouts', 'human', 'other'])
const digest = or(8, ['@2.digest@', '@2.digest@', '@0.digest@', '0'.repeat(64), 'A'.repeat(64)])
const types = or(4, ['run', 'run.suspended', 'tool,run', ',', 'continuation.armed/1', 'x.y'])
const time = or(6, ['iso', 'local', 'relative'])
const payloads = or(6, ['none', 'preview', 'full'])

/** What people and tools write: never to be repeated in an error. */
const payload: Values = (random) =>
  random.any(
    () => MARKER,
    () => `{"note":"${MARKER}"}`,
    () => `{"reference":"${MARKER}","n":1}`,
    () => jsonText(random, 3),
    () => `{"${MARKER}"`,
    () => strangeText(random),
    () => `{"answers":{"q":"${MARKER}"}}`,
  )

interface Shape {
  arguments: Values[]
  options: Record<string, Values | true>
}

const scope = { '--app': name, '--user': name }
const shows = { '--time': time }
const told = { '--payloads': payloads }
const topic = { '--since': since, '--limit': limit, '--follow': true as const }
const quoted = { '--digest': digest, '--by': word, '--command-id': word }
const asks = {
  ...scope,
  '--input-json': payload,
  '--tool-recovery': or(3, ['never', 'always']),
  '--tool-errors': or(3, ['throw', 'return']),
}

const COMMANDS: Record<string, Shape> = {
  threads: {
    arguments: [],
    options: {
      ...scope,
      ...shows,
      '--state': or(3, ['waiting', 'completed', 'idle', 'quarantined']),
      '--since': since,
      '--limit': limit,
    },
  },
  show: {
    arguments: [thread],
    options: {
      ...scope,
      ...shows,
      ...told,
      '--at': version,
      '--types': types,
      '--limit': limit,
      '--all': true,
      '--groups': true,
      '--detail': true,
      '--from': limit,
      '--follow': true,
      '--until': types,
      '--timeout': duration,
    },
  },
  state: { arguments: [thread], options: { ...scope, '--at': version } },
  replay: { arguments: [thread], options: { ...scope, ...told, '--at': version } },
  waits: {
    arguments: [],
    options: {
      ...scope,
      ...shows,
      '--kind': or(3, ['approval', 'external']),
      '--provider': name,
      '--thread': thread,
      '--status': or(3, ['any', 'completed', 'pending']),
      '--due': duration,
      '--limit': limit,
      '--follow': true,
    },
  },
  cancel: { arguments: [thread], options: { ...scope, '--reason': payload, '--command-id': word } },
  wait: { arguments: [wait], options: { ...shows, ...told } },
  approve: { arguments: [wait], options: { ...quoted, ...told, '--reason': payload, '--override-args': payload, '--yes': true } },
  deny: { arguments: [wait], options: { ...quoted, '--reason': payload } },
  answer: { arguments: [wait], options: { ...quoted, '--result': payload, '--response': payload } },
  'results send': {
    arguments: [],
    options: {
      '--provider': name,
      '--external-id': wait,
      '--continuation-id': wait,
      '--result': payload,
      '--failure': or(2, ['bank_closed']),
      '--retryable': true,
      '--result-id': word,
      '--schema-id': or(2, ['@0.schema@']),
      '--digest': digest,
      '--app': name,
      '--timeout': duration,
      '--no-wait': true,
    },
  },
  requests: { arguments: [], options: { ...topic, ...shows, ...told, '--app': name, '--provider': name, '--wait': wait } },
  receipts: {
    arguments: [],
    options: { ...topic, ...shows, '--verdict': or(3, ['accepted', 'conflict']), '--provider': name, '--wait': wait },
  },
  checkpoints: { arguments: [], options: { ...topic, ...shows, ...told, '--app': name, '--thread': thread } },
  verify: { arguments: [thread], options: { ...scope, '--all': true } },
  run: { arguments: [or(8, ['@module@', './nowhere.ts']), thread, payload], options: { ...asks, '--agent': or(2, ['worker']) } },
  start: {
    arguments: [or(3, ['worker']), thread, payload],
    options: { ...asks, '--command-id': word, '--wait': true, '--timeout': duration },
  },
  engine: { arguments: [or(4, ['@module@'])], options: { '--app': name, '--concurrency': limit } },
  help: { arguments: [or(2, ['show', 'results'])], options: {} },
}
/** Options without which a command does nothing: one of each list. */
const NEEDED: Record<string, string[][]> = {
  approve: [['--yes'], ['--digest']],
  answer: [['--result', '--response']],
  'results send': [['--provider'], ['--external-id', '--continuation-id'], ['--result', '--failure']],
}
const GLOBAL: Record<string, Values | true> = {
  '--output': or(8, ['text', 'json', 'jsonl']),
  '-o': or(8, ['text', 'json', 'jsonl']),
  '--json': true,
  '--color': or(6, ['auto', 'never', 'always']),
}

/** Commands that change the log, or may make one. */
export const WRITING = new Set(['approve', 'deny', 'answer', 'cancel', 'results', 'run', 'start', 'engine'])

export function cliCase(random: Random): CliCase {
  const process = random.once(80)
  if (random.once(30)) return { process, args: random.list(0, 4, () => word(random)) }
  const command = random.pick(Object.keys(COMMANDS))
  const shape = COMMANDS[command] as Shape
  const given = shape.arguments.flatMap((values) => (random.once(12) ? [] : [values(random)]))
  if (command === 'verify' && random.once(2)) given.pop()
  const needed = (NEEDED[command] ?? []).flatMap((flags) => (random.once(10) ? [] : [random.pick(flags)]))
  const options = Object.entries(shape.options).filter(([flag]) => needed.includes(flag) || random.once(8))
  const parts = [...options, ...Object.entries(GLOBAL).filter(() => random.once(8))].map(([flag, values]) =>
    optionText(random, flag, values),
  )
  if (random.once(20)) parts.push(random.pick([['--nonsense'], ['-h'], ['-V'], ['--help'], ['-x'], ['--all=1'], ['extra']]))
  if (command === 'verify' && given.length === 0) parts.push(['--all'])
  if (random.once(12))
    parts.push([
      '--log',
      random.pick([
        'sqlite:',
        'sqlite:./other.db',
        'sqlite:nowhere/x.db',
        'memory',
        'kafka://h:1/x',
        'sqlite::memory:',
        'sqlite:.',
        'file:x',
        '',
        MARKER.replace(/[^a-z]/g, '-'),
        'sqlite:a\0b',
        `sqlite:${'x'.repeat(5_000)}`,
      ]),
    ])
  else parts.push(['--log', '@log@'])
  const before = random.once(5) ? parts.splice(random.below(parts.length), 1).flat() : []
  const all = random.once(3) ? [...parts.flat(), ...given] : [...given, ...parts.flat()]
  return { process, args: [...before, ...command.split(' '), ...all] }
}

function optionText(random: Random, flag: string, values: Values | true): string[] {
  if (values === true) return [flag]
  const value = values(random)
  if (random.once(15)) return [flag]
  return flag.startsWith('--') && random.once(4) ? [`${flag}=${value}`] : [flag, value]
}
