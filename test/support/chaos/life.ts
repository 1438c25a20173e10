import type { RunResult, Threadlog } from '../../../src/index.ts'
import { script } from '../processes/worker.ts'

/** The thread of {@link live}. */
export const THREAD = 'life_1'

const INPUT = script([{ id: 'c1', name: 'note' }], [{ id: 'c2', name: 'ask' }], 'done')

/** A whole life of a thread: asked for, an effect, a question to the desk and its answer, the end. May be begun again after any death. */
export async function live(threads: Threadlog): Promise<RunResult> {
  const run = await threads.start({ agent: 'worker', thread: THREAD, input: INPUT, commandId: 'live' })
  await threads.serve({ sweepMs: 20 })
  // Ends when the log is closed: after some deaths there is nothing left to answer.
  void answerAll(threads)
  return run.result()
}

async function answerAll(threads: Threadlog): Promise<void> {
  for await (const { id } of threads.waits({ thread: THREAD, follow: true }))
    await threads.submit({ provider: 'desk', continuation_id: id, result: { said: 'yes' } }, { commandId: id })
}
