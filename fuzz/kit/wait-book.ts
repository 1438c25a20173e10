import type { ExpectedSubmission } from './expected.ts'
import { APPLICATION, type ShopWait } from './shop.ts'
import { type Tree, writeSorted } from './strict-json.ts'

/** How a record is submitted, as far as it matters for the verdict. */
export interface Way {
  /** True where nobody may answer for people. */
  readonly outside: boolean
  /** Names the submission: the same one again gets the verdict it got. */
  readonly coordinate: string
}

interface Answered {
  readonly digest: string
  readonly coordinate: string
  readonly resultId: string
}

/** What the waits of a log have been answered with, and what that makes of the next result (design §6). */
export class WaitBook {
  readonly waits: readonly ShopWait[]
  readonly #answered = new Map<string, Answered>()

  constructor(waits: readonly ShopWait[]) {
    this.waits = waits
  }

  /** The verdicts that may be given; several only where a person's decision is judged by its form. */
  verdicts(s: ExpectedSubmission, way: Way): string[] {
    if (way.outside && s.provider === 'human') return ['forbidden']
    const wait = this.#find(s)
    if (!wait) return ['unknown']
    const answered = this.#answered.get(wait.id)
    const again = answered && answered.digest === s.digest
    if (again && (answered.coordinate === way.coordinate || (s.resultId !== undefined && s.resultId === answered.resultId)))
      return ['accepted']
    if (s.schema !== undefined && s.schema !== wait.schema) return ['schema-mismatch']
    if (answered) return [again ? 'duplicate' : 'conflict']
    if (s.proposal !== undefined && s.proposal !== wait.digest) return ['proposal-changed']
    if ('failure' in s.outcome || wait.tool === 'errand') return ['accepted']
    if (wait.tool === 'refund') return ['accepted', 'invalid']
    return [acceptedValue(wait, s) === undefined ? 'invalid' : 'accepted']
  }

  /** Notes an accepted result. False if its wait had one. */
  accept(s: ExpectedSubmission, way: Way): boolean {
    const wait = this.#find(s)
    if (!wait || this.#answered.has(wait.id)) return false
    this.#answered.set(wait.id, { digest: s.digest, coordinate: way.coordinate, resultId: s.resultId ?? way.coordinate })
    return true
  }

  waitOf = (s: ExpectedSubmission): ShopWait | undefined => this.#find(s)

  #find(s: ExpectedSubmission): ShopWait | undefined {
    const wait = this.waits.find(({ id }) => id === (s.continuation ?? s.external))
    if (!wait || wait.provider !== s.provider) return undefined
    // A wait is found by its external id within one application; by its own id the application is checked when quoted.
    return s.application === undefined || s.application === APPLICATION ? wait : undefined
  }
}

/** Canonical text of the value that is accepted: undefined when the schema refuses it. A person's decision is kept as it is. */
export function acceptedValue(wait: ShopWait, { outcome }: ExpectedSubmission): string | undefined {
  if (!('result' in outcome)) return undefined
  if (wait.tool !== 'payout') return writeSorted(outcome.result)
  const reference: Tree | undefined = outcome.result instanceof Map ? outcome.result.get('reference') : undefined
  return typeof reference === 'string' ? writeSorted(new Map([['reference', reference]])) : undefined
}
