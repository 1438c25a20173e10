import { fork } from 'node:child_process'
import { join } from 'node:path'
import type { Measured } from './resume.ts'

/** Runs a measurement in a process of its own, which answers with one message and ends. */
export function measuredBy(file: string, options: object): Promise<Measured> {
  const child = fork(join(import.meta.dirname, file), [JSON.stringify(options)])
  return new Promise((resolve, reject) => {
    let measured: Measured | undefined
    child.on('message', (message) => {
      measured = message as Measured
    })
    child.on('error', reject)
    child.on('exit', (code, signal) =>
      code === 0 && measured ? resolve(measured) : reject(new Error(`${file} ended with ${code ?? signal}.`)),
    )
  })
}
