import { now, pool, quantile, shuffled } from './statistics.ts'

/** What the producer drives: work that is suspended until a result comes from outside. */
export interface Suspended {
  /** Waits until it takes results, and opens so many connections, where results go over connections of their own. */
  connect(count: number): Promise<void>
  /** Sends the result of an order; resolves when it is acknowledged. */
  complete(order: number): Promise<void>
  /** Set by the loop: told that an order runs again, and when (monotonic milliseconds) its code did so. */
  onResumed: (order: number, at: number) => void
}

export interface Figures {
  perSecond: number
  p50: number
  p99: number
}

/**
 * A closed loop: `inFlight` results are on their way at any time, the next is sent when one of them is known to have resumed its work.
 * Orders come in random order. Latency is from before the send to the time the resumed code noted, both on one clock.
 */
export async function resumeLoop(suspended: Suspended, orders: readonly number[], inFlight: number): Promise<Figures> {
  const sent = new Map<number, { at: number; done: () => void }>()
  const latencies: number[] = []
  const acknowledged: Promise<void>[] = []
  suspended.onResumed = (order, at) => {
    const waiting = sent.get(order)
    if (!waiting) return
    sent.delete(order)
    latencies.push(at - waiting.at)
    waiting.done()
  }
  // An acknowledgement may come after the resume, when the next result has been sent.
  await suspended.connect(2 * inFlight)
  const begun = now()
  await pool(orders.length, inFlight, (i) => {
    const order = orders[i] as number
    return new Promise<void>((done, fail) => {
      sent.set(order, { at: now(), done })
      const acknowledgement = suspended.complete(order)
      acknowledgement.catch(fail)
      acknowledged.push(acknowledgement)
    })
  })
  const seconds = (now() - begun) / 1_000
  await Promise.all(acknowledged)
  return figures(latencies, seconds)
}

export const figures = (latencies: readonly number[], seconds: number): Figures => ({
  perSecond: latencies.length / seconds,
  p50: quantile(latencies, 0.5) ?? Number.NaN,
  p99: quantile(latencies, 0.99) ?? Number.NaN,
})

/** Orders of the warm-up and of the measurement, in random order. */
export function ordersOf(warmUp: number, n: number): { warm: number[]; measured: number[] } {
  const order = shuffled(warmUp + n)
  return { warm: order.slice(0, warmUp), measured: order.slice(warmUp) }
}
