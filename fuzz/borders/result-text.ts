import type { AvroFields } from '../kit/avro-record.ts'
import { bytesText, changedBytes, changedText, jsonText, objectText, strangeText, stringText } from '../kit/json-text.ts'
import { MARKER } from '../kit/marker.ts'
import type { Random } from '../kit/random.ts'

const WAITS = 30
const PROVIDERS = ['payouts', 'errands', 'human'] as const

/** Bytes (one character each) that are or nearly are a result record. Waits are named by place, see {@link placed}. */
export function resultBytes(random: Random): string {
  if (random.once(30)) return bytesText(jsonText(random))
  if (random.once(40)) return random.bytes(random.size(300))
  if (random.once(60)) return `\x00${random.bytes(random.size(300))}`
  const text = recordText(random)
  const changed = random.once(10) ? changedText(random, text) : text
  const bytes = bytesText(changed)
  return random.once(20) ? changedBytes(random, bytes) : bytes
}

function recordText(random: Random): string {
  const n = random.below(WAITS)
  const members: [string, string][] = [
    ['provider', random.once(10) ? stringText(random) : quoted(random.once(10) ? random.pick(PROVIDERS) : `@${n}.provider@`)],
  ]
  const address = random.once(15) ? stringText(random) : quoted(`@${n}.id@`)
  members.push([random.pick(['continuation_id', 'external_id']), address])
  if (random.once(20))
    members.push([random.pick(['continuation_id', 'external_id']), random.pick([address, 'null', quoted('x')])])
  members.push(...outcome(random, n))
  if (random.once(6)) members.push(['result_id', random.once(3) ? strange(random, 600) : quoted(`r${random.below(5)}`)])
  if (random.once(8)) members.push(['application_id', quoted(random.pick(['shop', 'other', '']))])
  if (random.once(6)) members.push(['schema_id', random.pick([quoted(`@${n}.schema@`), 'null', strange(random, 300)])])
  if (random.once(6))
    members.push(['proposal_digest', random.pick([quoted(`@${n}.digest@`), quoted('0'.repeat(64)), jsonText(random, 0)])])
  if (random.once(15)) members.push([random.pick([strangeText(random), MARKER]), jsonText(random, 1)])
  return objectText(random, members)
}

function outcome(random: Random, n: number): [string, string][] {
  const value = (): string =>
    random.any(
      () => (n % 3 === 0 ? `{"reference":${stringText(random)}}` : n % 3 === 2 ? approval(random) : jsonText(random)),
      () => jsonText(random),
      () => quoted(MARKER),
      () => (random.once(10) ? quoted('x'.repeat(random.pick([65_533, 65_534, 65_535, 65_536, 1_050_000]))) : 'null'),
    )
  const failure = (): string =>
    random.any(
      () =>
        `{"code":"${random.pick(['bank_closed', MARKER, '', 'x'])}","retryable":${random.pick(['true', 'false', 'null', '1'])}}`,
      () => '{"code":"bank_closed"}',
      () => jsonText(random, 2),
      () => 'null',
    )
  if (random.once(4)) return [['failure', failure()]]
  if (random.once(12))
    return [
      ['result', value()],
      ['failure', failure()],
    ]
  return random.once(25) ? [] : [['result', value()]]
}

const approval = (random: Random): string =>
  `{"approved":${random.pick(['true', 'false', '1', 'null'])}${random.once(3) ? `,"message":${stringText(random)}` : ''}${
    random.once(3) ? `,"override_args":${random.pick(['{"n":1,"note":""}', jsonText(random, 2)])}` : ''
  }}`

/** A record in Avro, its texts one character a byte, and bytes that are changed in it. */
export function avroRecord(random: Random): { fields: AvroFields; spoilt: [number, number][] } {
  const n = random.below(WAITS)
  const odd = (): string =>
    random.any(
      () => bytesText(strangeText(random)),
      () => random.bytes(random.size(20)),
      () => `\xff${MARKER}`,
    )
  const perhaps = (often: number, good: string): string | null => (random.once(often) ? (random.once(4) ? odd() : good) : null)
  const address = random.once(12) ? odd() : `@${n}.id@`
  const external = random.once(2)
  const fails = random.once(5)
  const fields: AvroFields = {
    application_id: perhaps(8, 'shop'),
    provider: random.once(15) ? odd() : `@${n}.provider@`,
    external_id: external ? address : null,
    continuation_id: !external || random.once(20) ? address : null,
    result_id: perhaps(5, `r${random.below(5)}`),
    schema_id: perhaps(5, `@${n}.schema@`),
    proposal_digest: perhaps(5, `@${n}.digest@`),
    result:
      fails && !random.once(10)
        ? null
        : random.once(12)
          ? odd()
          : bytesText(n % 3 === 0 ? `{"reference":${stringText(random)}}` : jsonText(random)),
    failure: fails ? { code: random.once(4) ? odd() : 'bank_closed', retryable: random.once(2) } : null,
  }
  const spoilt = random.once(3) ? random.list(1, 3, (): [number, number] => [random.below(1_000), random.below(300)]) : []
  return { fields, spoilt }
}

const quoted = (text: string): string => JSON.stringify(text)
const strange = (random: Random, length: number): string =>
  random.once(2) ? quoted('i'.repeat(random.between(length - 100, length + 500))) : stringText(random)
