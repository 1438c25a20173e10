// One border in a process of its own, so that a crash or an endless loop ends no more than this process.
import { openSync, writeSync } from 'node:fs'
import { borders } from '../borders.ts'
import { type Report, run } from './run.ts'

interface Order {
  border: string
  seed: string
  ms: number
  from: number
  /** File in which the number of the current case stands, 8 bytes. */
  progress: string
}

process.once('message', (order: Order) => void obey(order))

async function obey({ border, seed, ms, from, progress }: Order): Promise<void> {
  const file = openSync(progress, 'r+')
  const place = Buffer.alloc(8)
  const onCase = (number: number) => {
    place.writeBigUInt64LE(BigInt(number))
    writeSync(file, place, 0, 8, 0)
  }
  let known = 0
  let told = performance.now()
  const onReport = (report: Report) => {
    if (performance.now() - told < 500 && report.found.length === known) return
    known = report.found.length
    told = performance.now()
    process.send?.({ report, done: false })
  }
  const found = borders().find(({ name }) => name === border)
  if (!found) throw new Error(`no border ${border}`)
  const report = await run(found, { seed, ms, from, onCase, onReport })
  process.send?.({ report, done: true }, () => process.exit(0))
}
