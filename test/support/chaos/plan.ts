/** What is done with one request to the carrier. */
export type Card =
  | 'plain'
  /** The carrier says that it failed. */
  | 'failure'
  /** Twice with one `result_id`: the first verdict again. */
  | 'again'
  /** Twice with two: `duplicate`. */
  | 'double'
  /** A second result says something else: `conflict`. */
  | 'contradiction'
  /** Sent after its invocation was cancelled: `cancelled`. */
  | 'late-cancelled'
  /** Sent after new input took the thread: `abandoned`. */
  | 'late-superseded'
  /** Sent while the invocation is being cancelled: accepted or `cancelled`, as the log says. */
  | 'race-cancelled'
  /** Together with a record that can never be accepted. */
  | 'noise'

/** Of 100 requests. 10 % of results are doubled, 2 % contradictory, 2 % late. */
const DECK: Record<Card, number> = {
  plain: 77,
  failure: 4,
  again: 5,
  double: 5,
  contradiction: 2,
  'late-cancelled': 1,
  'late-superseded': 1,
  'race-cancelled': 2,
  noise: 3,
}

/** A small storm would see hardly any of the rare ones. */
const DENSE_DECK: Record<Card, number> = {
  plain: 6,
  failure: 1,
  again: 2,
  double: 2,
  contradiction: 2,
  'late-cancelled': 1,
  'late-superseded': 1,
  'race-cancelled': 1,
  noise: 1,
}

/** Cards without end; each deck is dealt out before the next. */
export function dealer(random: () => number, dense: boolean): () => Card {
  const deck = Object.entries(dense ? DENSE_DECK : DECK).flatMap(([card, n]) => Array.from({ length: n }, () => card as Card))
  let left: Card[] = []
  return () => {
    if (left.length === 0) left = [...deck]
    return left.splice(Math.floor(random() * left.length), 1)[0] as Card
  }
}
