const ISO = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt _](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)?)?$/
const NUMBER = /^[+-]?\d+(\.\d*)?$/
/** Numbers above this are milliseconds, as in pydantic. */
const SECONDS_LIMIT = 2e10
const FIRST_SECOND = -62135596800
const LAST_SECOND = 253402300799

/**
 * The written form of a timestamp: ISO 8601, `Z` for UTC, other offsets kept, fractions with six digits or none. Accepts ISO text
 * (also with a space), and seconds (or milliseconds, above 2e10) since the Unix epoch as number or text. `undefined` if it is neither.
 */
export function readTimestamp(value: unknown): string | undefined {
  if (typeof value === 'number') return fromSeconds(value)
  if (typeof value !== 'string') return undefined
  if (value.startsWith(latest.text) && WRITTEN_REST.test(value.slice(latest.text.length))) return value
  if (NUMBER.test(value)) return fromSeconds(Number(value))
  const match = ISO.exec(value)
  return match ? fromParts(match) : undefined
}

/** What follows the second in a timestamp of ours: a text that ends so need not be read. */
const WRITTEN_REST = /^(?:\.(?!0{6})\d{6})?Z$/

/** The second of the latest call and its text: a clock asks for the same one again and again. */
const latest = { second: 0, text: '1970-01-01T00:00:00' }

/** The written form of epoch milliseconds. */
export function isoTimestamp(epochMs: number): string {
  if (!(epochMs >= FIRST_SECOND * 1000 && epochMs <= LAST_SECOND * 1000)) return '1970-01-01T00:00:00Z'
  const second = Math.floor(epochMs / 1000)
  if (second !== latest.second) {
    latest.second = second
    latest.text = secondText(second)
  }
  return `${latest.text}${fraction((epochMs - second * 1000) * 1000)}Z`
}

function fromSeconds(value: number): string | undefined {
  const seconds = Math.abs(value) > SECONDS_LIMIT ? value / 1000 : value
  if (!Number.isFinite(seconds) || seconds > LAST_SECOND || seconds < FIRST_SECOND) return undefined
  const whole = Math.floor(seconds)
  const micros = Math.round((seconds - whole) * 1e6)
  return micros === 1e6 ? `${secondText(whole + 1)}Z` : `${secondText(whole)}${fraction(micros)}Z`
}

const secondText = (second: number): string => new Date(second * 1000).toISOString().slice(0, 19)

const fraction = (micros: number): string => (micros === 0 ? '' : `.${String(Math.round(micros)).padStart(6, '0')}`)

function fromParts(match: RegExpExecArray): string | undefined {
  const [
    ,
    year,
    month,
    day,
    hour = '00',
    minute = '00',
    second = '00',
    digits = '',
    ,
    sign,
    offsetHour = '00',
    offsetMinute = '00',
  ] = match
  if (!isCalendarDay(Number(year), Number(month), Number(day))) return undefined
  if (hour > '23' || minute > '59' || second > '59' || offsetHour > '23' || offsetMinute > '59') return undefined
  const clock = `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction(Number(digits.padEnd(6, '0').slice(0, 6)))}`
  const utc = match[8] !== undefined || (sign !== undefined && offsetHour === '00' && offsetMinute === '00')
  if (utc) return `${clock}Z`
  return sign === undefined ? clock : `${clock}${sign}${offsetHour}:${offsetMinute}`
}

function isCalendarDay(year: number, month: number, day: number): boolean {
  if (year < 1 || month < 1 || month > 12 || day < 1) return false
  const date = new Date(0)
  date.setUTCFullYear(year, month, 0)
  return day <= date.getUTCDate()
}
