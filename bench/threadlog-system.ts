import type { Suspended } from './closed-loop.ts'
import { EngineProcess } from './engine-client.ts'
import { connect, send } from './http-client.ts'
import { PROVIDER, resultOf } from './workload.ts'

/** A threadlog engine in its own process, given results over its HTTP intake. */
export class ThreadlogSystem implements Suspended {
  readonly engine: EngineProcess
  onResumed: Suspended['onResumed'] = () => {}

  constructor(log: string, profiled = false) {
    this.engine = new EngineProcess(log, profiled)
    this.engine.onAsked = (order, at) => this.onResumed(order, at)
  }

  async connect(count: number): Promise<void> {
    await connect((await this.engine.ready).url, count)
  }

  close(): Promise<void> {
    return this.engine.kill()
  }

  async complete(order: number): Promise<void> {
    const { url, token } = await this.engine.ready
    const record = resultRecord(order, this.engine.waits.get(order) ?? '')
    const { status, body } = await send('POST', url, record, { authorization: `Bearer ${token}` })
    if (status !== 200) throw new Error(`The result of order ${order} was refused: ${status} ${body}`)
  }
}

export const resultRecord = (order: number, continuationId: string): string =>
  JSON.stringify({ provider: PROVIDER, continuation_id: continuationId, result: resultOf(order) })
