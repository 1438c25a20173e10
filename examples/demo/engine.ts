// One engine: serves the support agent on a log until it is killed.
//   node engine.ts <log> <effects file> [tool to hang in]
import { openThreadlog } from '../../src/index.ts'
import { supportAgent } from './agent.ts'
import { type Effect, Effects } from './effects.ts'

const [address = '', effectsFile = '', hangIn] = process.argv.slice(2)
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const effects = new Effects(effectsFile)

/** A log on Kafka is opened by its own entry of the package. */
async function opened(address: string) {
  if (!address.startsWith('kafka:')) return address as `sqlite:${string}`
  const { kafkaAddress, openKafkaLog } = await import('../../src/log/kafka/index.ts')
  return openKafkaLog(kafkaAddress(address))
}

async function effect(done: Omit<Effect, 'pid'>): Promise<void> {
  effects.record({ ...done, pid: process.pid })
  say({ event: 'effect', tool: done.tool })
  if (done.tool === hangIn) await new Promise(() => {})
}

const threads = await openThreadlog({ log: await opened(address), application: 'shop', agents: [supportAgent(effect)] })
await threads.serve({ onProblem: (problem) => say({ event: 'problem', ...problem }) })
say({ event: 'serving' })
process.stdin.resume().on('end', () => process.exit())
