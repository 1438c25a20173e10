import { join } from 'node:path'
import { decodeReceipt, type Receipt } from '../../../src/continuations/index.ts'
import { openThreadlog, type Threadlog } from '../../../src/index.ts'
import type { KafkaLogOptions } from '../../../src/log/kafka/index.ts'
import type { KafkaPlace } from '../../support/kafka/index.ts'
import { script, workerAgent } from '../../support/processes/worker.ts'

/** An engine on the log of a place, in this process. What it met and got over is in `problems`. */
export interface Rig extends AsyncDisposable {
  readonly threads: Threadlog
  readonly problems: string[]
  readonly ledger: string
  /** Starts a run that asks the desk once; resolves with the id of the wait. */
  asks(thread: string): Promise<string>
}

export async function rig(
  place: KafkaPlace,
  options: Partial<KafkaLogOptions> & { serve?: boolean; deadlines?: Record<string, number> } = {},
): Promise<Rig> {
  const ledger = join(place.folder, 'ledger.jsonl')
  const problems: string[] = []
  const { serve = true, deadlines = {}, ...log } = options
  const backend = await place.open(log)
  const threads = await openThreadlog({ log: backend, application: 'shop', agents: [workerAgent({ ledger, deadlines })] })
  if (serve) await threads.serve({ sweepMs: 100, onProblem: ({ where, code }) => problems.push(`${where} ${code}`) })
  const close = async () => {
    await threads.close()
    await backend.close()
  }
  const input = script([{ id: 'c1', name: 'ask' }], 'done')
  return {
    threads,
    problems,
    ledger,
    asks: async (thread) => {
      await threads.start({ agent: 'worker', thread, input, commandId: thread })
      for await (const { id } of threads.waits({ thread, follow: true })) return id
      throw new Error('no wait')
    },
    [Symbol.asyncDispose]: close,
  }
}

/** A result for a wait, as its producer writes it. */
export const resultOf = (wait: string, said = 'yes', more: object = {}): string =>
  JSON.stringify({ provider: 'desk', continuation_id: wait, result: { said }, ...more })

export async function receiptsOf({ threads }: Rig): Promise<Receipt[]> {
  const receipts: Receipt[] = []
  for await (const batch of threads.backend.topics.scan('receipts'))
    for (const { value } of batch)
      try {
        receipts.push(decodeReceipt(value))
      } catch {
        // Not ours.
      }
  return receipts
}

/** Receipts by the offset they judge, in one partition. */
export const verdictsOf = (receipts: readonly Receipt[], partition = 0): Record<number, string[]> => {
  const found: Record<number, string[]> = {}
  for (const { source, verdict } of receipts)
    if ('offset' in source && source.partition === partition) (found[source.offset] ??= []).push(verdict)
  return found
}
