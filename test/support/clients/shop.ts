import type { Threadlog, ThreadlogOptions, Wait } from '../../../src/index.ts'
import { openThreadlog } from '../../../src/index.ts'
import { agentOf, calls, says, toolbox } from '../agents.ts'
import { type KafkaPlace, kafkaPlace } from '../kafka/index.ts'

/** The provider whose results come from outside; its results are `{ ok: boolean }`. */
export const OUTSIDE = 'outside'

export interface Shop extends AsyncDisposable {
  readonly threads: Threadlog
  readonly place: KafkaPlace
  /** `host:port,…` and prefix: the first arguments of every example. */
  readonly where: readonly [brokers: string, prefix: string]
  /** Starts a run; answers the wait it comes to. */
  waiting(thread: string): Promise<Wait>
  /** Output of the run of a thread, when it has ended. */
  ended(thread: string): Promise<string | undefined>
}

/** An engine on a log of its own on the broker of the run, with an agent that makes one call that only the outside can answer. */
export async function openShop(options: Pick<ThreadlogOptions, 'resultSchemas'> = {}): Promise<Shop> {
  const place = await kafkaPlace()
  const { tools } = toolbox()
  const agent = agentOf((prompt) => (prompt.at(-1)?.role === 'tool' ? says('done') : calls(['c1', 'far', { n: 1 }])), [tools.far])
  const log = await place.open()
  const threads = await openThreadlog({ log, application: 'shop', agents: [agent], ...options })
  const engine = await threads.serve()
  const runs = new Map<string, Awaited<ReturnType<Threadlog['start']>>>()
  return {
    threads,
    place,
    where: [place.brokers.join(','), place.prefix],
    async waiting(thread) {
      runs.set(thread, await threads.start({ agent: 'agent', thread, input: 'go' }))
      for await (const wait of threads.waits({ thread, follow: true })) return wait
      throw new Error('no wait')
    },
    async ended(thread) {
      return String((await runs.get(thread)?.result())?.output)
    },
    async [Symbol.asyncDispose]() {
      await engine.close()
      await threads.close()
      await place.remove()
    },
  }
}
