import { appendFileSync, existsSync, readFileSync } from 'node:fs'

/** One line of the effects file: a tool body that ran. */
export interface Effect {
  tool: string
  order: string
  key: string
  pid: number
}

/** The world outside: what is written here has happened, whatever becomes of the process that wrote it. */
export class Effects {
  readonly file: string

  constructor(file: string) {
    this.file = file
  }

  record(effect: Effect): void {
    appendFileSync(this.file, `${JSON.stringify(effect)}\n`, { flush: true })
  }

  all(): Effect[] {
    if (!existsSync(this.file)) return []
    const lines = readFileSync(this.file, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Effect)
  }

  of(tool: string): Effect[] {
    return this.all().filter((effect) => effect.tool === tool)
  }
}
