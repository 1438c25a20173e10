import { usage } from './errors.ts'

export type TimeForm = 'iso' | 'local' | 'relative'

/** ISO 8601 in UTC to the millisecond. Any count is a time to the log; a date ends in the year 275760. */
export const isoTime = (ms: number): string => new Date(Math.min(ms, 8.64e15)).toISOString()

/** A time as a table shows it. */
export function timeText(ms: number, form: TimeForm, now: number): string {
  if (form === 'relative') return ms <= now ? `${durationText(now - ms)} ago` : `in ${durationText(ms - now)}`
  return form === 'local' ? localTime(ms) : isoTime(ms)
}

function localTime(ms: number): string {
  const offset = -new Date(ms).getTimezoneOffset()
  const sign = offset < 0 ? '-' : '+'
  const two = (n: number) => String(Math.floor(n)).padStart(2, '0')
  return `${isoTime(ms + offset * 60_000).slice(0, -1)}${sign}${two(Math.abs(offset) / 60)}:${two(Math.abs(offset) % 60)}`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** A duration in its two largest units: `3d 4h`, `4m 10s`; below a minute `2.1s`, below a second `850ms`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`
  const first = UNITS.findIndex(([, size]) => ms >= size)
  const [large, size] = UNITS[first] as (typeof UNITS)[number]
  const [small, part] = UNITS[first + 1] as (typeof UNITS)[number]
  const rest = Math.floor((ms % size) / part)
  return `${Math.floor(ms / size)}${large}${rest > 0 ? ` ${rest}${small}` : ''}`
}

const MS: Record<string, number> = { ms: 1, ...Object.fromEntries(UNITS) }

/** Milliseconds of `90s`, `1h30m`, `2d`, `500ms`. @throws usage error */
export function parseDuration(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text)
    throw usage(`'${text}' is no duration.`, { expected: 'a number with ms, s, m, h or d, such as 90s or 1h30m' })
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (MS[unit as string] as number), 0)
}

/** Epoch milliseconds of an ISO time, or of so long before now. @throws usage error */
export function parseSince(text: string, now: number): number {
  return /^\d{4}-/.test(text) ? parseTime(text) : now - parseDuration(text)
}

/** Epoch milliseconds of an ISO 8601 time. @throws usage error */
export function parseTime(text: string): number {
  const ms = /^\d{4}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw usage(`'${text}' is no time.`, { expected: 'ISO 8601, such as 2026-11-30T12:00:00Z' })
  return ms
}

/** Bytes as people read them: `512 B`, `1.2 kB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** `1 event`, `2 events`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
