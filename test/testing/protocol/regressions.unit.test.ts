import { describe, expect, test } from 'vitest'
import { type Mutation, type ProtocolSchedule, type ProtocolStep, replayProtocol } from '../../../src/testing/index.ts'

const schedule = (...steps: ProtocolStep[]): ProtocolSchedule => ({
  writers: 3,
  readers: 2,
  streams: 2,
  records: 'encoded',
  steps,
})

/** The schedule holds, and with the fault in the rules it does not. */
function tells(mutation: Mutation, code: string, which: ProtocolSchedule): void {
  replayProtocol(which)
  expect(() => replayProtocol(which, { mutations: [mutation] })).toThrow(code)
}

describe('schedules that tell a fault', () => {
  // The reply to a written commit is lost, and it is sent again. The second copy is void because the first was accepted: a writer that
  // looks at the offset it was told decides again, and the command is applied twice.
  test('judged by the wrong copy', () => {
    const twice = schedule(
      ['command', 0, 0, 'open', 1, 0],
      ['flush', 0, 'reply-lost', 0],
      ['flush', 0, 'delivered', 0],
      ['read', 0, 20],
    )
    tells('fate-from-acknowledged-offset', 'answer-contradicted', twice)
  })

  // A reader saves its offset between two halves of a commit and starts again. If that offset lies behind the first half, it finds
  // the second one headless, and refuses what every other reader accepts.
  test('stopped inside a commit', () => {
    const half = schedule(
      ['command', 0, 0, 'open', 1, 0],
      ['flush', 0, 'delivered', 0],
      ['read', 3, 1],
      ['save', 3],
      ['rewind', 3],
    )
    tells('restart-behind-open-commit', 'readers-differ', half)
  })

  // The first half of a commit is written, then something else, then the second half, which is acknowledged. No copy is accepted and none
  // will be, unless the writer sees that it has read everything up to there and sends the commit once more.
  test('row 120: acknowledged, and void', () => {
    const split = schedule(
      ['command', 0, 0, 'open', 1, 0],
      ['flush', 0, 'split', 0],
      ['disturb', 'garbage', 0, 0],
      ['deliver', 0],
    )
    tells('undecided-waited-for', 'undecided', split)
  })

  // A writer that lags behind is asked to cancel a run that another one has started. Without the barrier it says that there is none.
  test('a negative answer from behind', () => {
    const behind = schedule(
      ['command', 1, 0, 'open', 1, 0],
      ['flush', 1, 'delivered', 0],
      ['read', 1, 20],
      ['command', 1, 0, 'start', 1, 0],
      ['flush', 1, 'delivered', 0],
      ['command', 0, 0, 'cancel', 1, 0],
    )
    tells('no-barrier', 'negative-untrue', behind)
  })

  // A send fails and was written nevertheless. The writer that decides anew under another commit id asks for the same thing twice.
  test('decided again after a lost reply', () => {
    const again = schedule(
      ['command', 0, 0, 'open', 1, 0],
      ['flush', 0, 'delivered', 0],
      ['read', 0, 20],
      ['command', 0, 0, 'start', 1, 0],
      ['flush', 0, 'reply-lost', 0],
      ['read', 0, 20],
      ['flush', 0, 'delivered', 0],
    )
    tells('decide-again-after-failure', 'applied-twice', again)
  })

  // What a replaced attempt has sent arrives behind the takeover. It was based on what stood before, so it is void, and its writer is told
  // that the attempt is no longer its own.
  test('row 138: a late write of a replaced attempt', () => {
    const late = schedule(
      ['command', 0, 0, 'open', 1, 0],
      ['flush', 0, 'delivered', 0],
      ['read', 0, 20],
      ['read', 1, 20],
      ['command', 0, 0, 'work', 1, 0],
      ['flush', 0, 'late', 0],
      ['command', 1, 0, 'take', 1, 0],
      ['flush', 1, 'delivered', 0],
      ['deliver', 0],
    )
    tells('accept-without-reducer', 'version-gap', late)
    const { answers, commits } = replayProtocol(late)
    expect(answers).toMatchObject({ accepted: 2, 'not-current-attempt': 1 })
    expect(commits).toMatchObject({ accepted: 2, refused: 1 })
  })
})
