import { type Clock, systemClock } from '../../src/base/index.ts'

/** The system's clock, ahead by as much as a test has let pass. Sleeps take their real time. */
export interface SetClock extends Clock {
  pass(ms: number): void
}

export function setClock(): SetClock {
  let ahead = 0
  return { ...systemClock, now: () => systemClock.now() + ahead, pass: (ms) => void (ahead += ms) }
}
