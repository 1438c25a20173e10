import { spawn } from 'node:child_process'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { outsider } from '../processes/place.ts'
import type { Ground } from './ground.ts'
import { startInserter } from './inserter.ts'

/** A storm on one file. */
export function sqliteGround({ file, ledger }: { file: string; ledger: string }): Ground {
  let lock: ReturnType<typeof outsider> | undefined
  return {
    folder: dirname(file),
    ledger,
    address: () => ({ sqlite: file }),
    produce: async () => startInserter(file),
    // An owner that does not renew is taken for dead after 10,000.
    freezeMs: [10_800, 13_000],
    isLocked: async () => {
      if (!lock) {
        lock = outsider(file)
        lock.exec('PRAGMA busy_timeout = 0')
      }
      for (let tries = 0; tries < 150; tries++) {
        try {
          lock.exec('BEGIN IMMEDIATE')
          lock.exec('ROLLBACK')
          return false
        } catch {
          await delay(1)
        }
      }
      return true
    },
    verify: async (violate) => {
      lock?.close()
      lock = undefined
      await checkByCommand(file, violate)
    },
  }
}

/** The command line looks at the same file, in a process of its own. */
async function checkByCommand(file: string, violate: (what: string) => void): Promise<void> {
  const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))
  const verify = spawn(process.execPath, [main, 'verify', '--all', '--log', `sqlite:${file}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output: string[] = []
  for (const stream of [verify.stdout, verify.stderr]) stream.on('data', (chunk) => output.push(String(chunk)))
  const code = await new Promise((resolve) => verify.once('close', resolve))
  if (code !== 0) violate(`verify --all: exit ${code}\n${output.join('')}`)
}
