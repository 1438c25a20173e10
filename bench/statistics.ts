/** Milliseconds on the host's monotonic clock: comparable between processes. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

export const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b)

/** The value below which the given part (0 to 1) of the values lies; null without values. */
export function quantile(values: readonly number[], part: number): number | null {
  const inOrder = sorted(values)
  return inOrder[Math.min(inOrder.length - 1, Math.floor(inOrder.length * part))] ?? null
}

export const median = (values: readonly number[]): number | null => {
  const inOrder = sorted(values)
  const middle = Math.floor(inOrder.length / 2)
  if (inOrder.length % 2 === 1) return inOrder[middle] as number
  return inOrder.length === 0 ? null : ((inOrder[middle - 1] as number) + (inOrder[middle] as number)) / 2
}

/** Does `work` for 0 … n-1 with `width` of them going on at any time. */
export async function pool(n: number, width: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const lane = async () => {
    while (next < n) await work(next++)
  }
  await Promise.all(Array.from({ length: Math.min(width, n) }, lane))
}

/** 0 … n-1 in an order that looks random and is the same each time. */
export function shuffled(n: number, seed = 1): number[] {
  const order = Array.from({ length: n }, (_, i) => i)
  let state = seed
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const j = Math.floor((state / 2 ** 32) * (i + 1))
    ;[order[i], order[j]] = [order[j] as number, order[i] as number]
  }
  return order
}
