/**
 * What the model found:
 * - `version-gap`: a node accepted an event that does not continue its stream
 * - `readers-differ`: at the end a node has another state, other accepted records or other voids than a reader from the first record
 * - `restart-differs`: a reader stopped after some record and started from the offset it may save finds something else
 * - `rule-differs`: the accepted records are not those the rule names with the whole partition in view
 * - `quarantine-differs`: a thread is in quarantine where all can be read, or is not where something cannot
 * - `answer-contradicted`: a writer said accepted or refused, and the log says otherwise
 * - `applied-twice`: one command led to two accepted commits
 * - `negative-untrue`: a negative answer that was true at no moment since the command came
 * - `negative-before-barrier`: a negative answer decided on less than what the log held when the command came
 * - `void-not-final`: a commit was void because its stream had gone further, and a later copy was accepted
 * - `undecided`: a command that never gets an answer, though everything is delivered and read
 * - `threw`: an exception where none may be
 */
export type ProtocolFailureCode =
  | 'version-gap'
  | 'readers-differ'
  | 'restart-differs'
  | 'rule-differs'
  | 'quarantine-differs'
  | 'answer-contradicted'
  | 'applied-twice'
  | 'negative-untrue'
  | 'negative-before-barrier'
  | 'void-not-final'
  | 'undecided'
  | 'threw'

/** A check that did not hold, inside one run of the model. */
export class Violation extends Error {
  readonly code: ProtocolFailureCode

  constructor(code: ProtocolFailureCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

export function check(holds: boolean, code: ProtocolFailureCode, message: () => string): void {
  if (!holds) throw new Violation(code, message())
}
