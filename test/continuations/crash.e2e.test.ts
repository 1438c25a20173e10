import { describe } from 'vitest'
import { openLog } from '../../src/log/index.ts'
import { crashCases, type Host, type Scene } from '../support/crash-cases.ts'
import { Child } from '../support/processes/child.ts'
import { type Gate, hostCalls } from '../support/processes/host-calls.ts'
import { places } from '../support/processes/place.ts'

const place = places()

describe('on SQLite, the host a process that SIGKILL ends', () => {
  crashCases(async (): Promise<Scene> => {
    const { file, log } = place()
    const backend = await openLog(log)
    return {
      log: backend,
      host: async (gate) => {
        const child = await Child.start('host.ts', { address: { sqlite: file }, gate })
        return Object.assign(child, { die: () => child.kill() })
      },
      close: () => backend.close(),
    }
  })
})

// A log in memory ends with its process: there a host dies by never coming back from where it stands still.
describe('in memory', () => {
  crashCases(async (): Promise<Scene> => {
    const backend = await openLog('memory')
    return { log: backend, host: (gate) => hostInside(backend, gate), close: () => backend.close() }
  })
})

async function hostInside(backend: Scene['log'], gate: Gate): Promise<Host> {
  const calls = (await hostCalls(backend, gate)) as unknown as Record<string, (argument: unknown) => Promise<never>>
  const must: Host['must'] = async (call, argument) => calls[call]?.(argument) as never
  return { must, ask: (call, argument) => must(call, argument).catch(() => {}), die: async () => {} }
}
