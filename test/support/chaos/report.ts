import type { Audit } from './audit.ts'

/** A report as text: counts, then what is wrong. */
export function reportText({ counts, violations }: Audit): string {
  const lines = Object.entries(counts).map(
    ([name, value]) => `${`${name}:`.padEnd(16)} ${typeof value === 'number' ? value : parts(value)}`,
  )
  const wrong = violations.length === 0 ? ['no violation'] : [`${violations.length} VIOLATIONS`, ...violations.slice(0, 50)]
  return [...lines, '', ...wrong].join('\n')
}

const parts = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([name, n]) => `${n} ${name}`)
    .join(', ') || 'none'
