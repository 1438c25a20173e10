import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Producer } from './inserter.ts'

/** At a time; each is a client of its own, which asks where the topic is. */
const AT_ONCE = 8

/**
 * Writes results with `kcat`, one process each: what it reads is one record, and it ends well once all copies have it. One that fails, or is ended
 * because its broker is away for too long, is repeated.
 */
export function kcatProducer(o: { brokers: readonly string[]; topic: string; folder: string }): Producer {
  const settings = [
    'acks=all',
    'topic.partitioner=murmur2_random',
    'message.timeout.ms=10000',
    'log_level=0',
    'allow.auto.create.topics=false',
  ]
  const args = ['-P', '-q', '-b', o.brokers.join(','), '-t', o.topic, ...settings.flatMap((each) => ['-X', each])]
  const running = new Set<ReturnType<typeof spawn>>()
  let closed = false
  let count = 0
  let free = AT_ONCE
  const waiting: (() => void)[] = []

  async function turn<T>(work: () => Promise<T>): Promise<T> {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve))
    else free--
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free++
    }
  }

  const sent = (key: string, value: Uint8Array) =>
    new Promise<boolean>((resolve) => {
      // A file is one record, whatever is in it.
      const file = join(o.folder, `kcat-${++count}`)
      writeFileSync(file, value)
      const child = spawn('kcat', [...args, '-k', key, file], { stdio: 'ignore', timeout: 20_000 })
      running.add(child)
      const end = (isSent: boolean) => {
        running.delete(child)
        rmSync(file, { force: true })
        resolve(isSent)
      }
      child.once('close', (code) => end(code === 0))
      child.once('error', () => end(false))
    })

  return {
    language: 'kcat',
    // A send whose answer is lost is repeated.
    once: false,
    insert: (key, value) =>
      turn(async () => {
        while (!closed && !(await sent(key, value))) await delay(100)
      }),
    close: async () => {
      closed = true
      for (const child of running) child.kill('SIGKILL')
    },
  }
}
