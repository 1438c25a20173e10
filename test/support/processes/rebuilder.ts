import { appendFileSync } from 'node:fs'
import { openLog, type Projector } from '../../../src/log/index.ts'
import { options } from './child.ts'

// Builds a table from the log, slowly, and notes outside of the log what it is given, before it is committed. Meant to be killed.

const { file, notes, ms } = options<{ file: string; notes: string; ms: number }>()
const pause = new Int32Array(new SharedArrayBuffer(4))

const copied: Projector = {
  name: 'copied',
  version: 1,
  schema: 'CREATE TABLE copied(id INTEGER PRIMARY KEY, version INTEGER)',
  drop: 'DROP TABLE copied',
  apply(tx, events) {
    const offsets = events.map(({ position }) => Number(position.offset))
    appendFileSync(notes, `${process.pid} ${offsets[0]} ${offsets.at(-1)}\n`)
    for (const [i, { version }] of events.entries()) {
      tx.run('INSERT INTO copied(id, version) VALUES (?, ?)', offsets[i]!, version)
      tx.publish('checkpoints', { key: '', value: Buffer.from(String(offsets[i])) })
      if (i % 100 === 99) Atomics.wait(pause, 0, 0, ms)
    }
  },
}

const backend = await openLog(`sqlite:${file}`)
await backend.install([copied])
appendFileSync(notes, `${process.pid} done\n`)
await backend.close()
// Listening for the parent's end keeps a process: this one is done.
process.disconnect()
