import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'

/** A value as SQLite knows it. Blobs hold one character a byte; integers and reals are written out. */
export type SqlGiven = ['null', null] | ['int' | 'real' | 'text' | 'blob', string]

export interface Statement {
  sql: string
  values: SqlGiven[]
}

/** What a statement came to. `unsayable`: the program cannot even send such a value. */
export interface Executed {
  error?: string
  unsayable?: boolean
}

/** Somebody else's connection to the file. */
export interface Outside {
  execute(statement: Statement): Promise<Executed>
  close(): Promise<void>
}

export function nodeOutside(file: string): Outside {
  const database = new DatabaseSync(file, { timeout: 5_000 })
  const given = ([kind, content]: SqlGiven): SQLInputValue => {
    if (kind === 'null') return null
    if (kind === 'int') return BigInt(content)
    if (kind === 'real') return Number(content)
    return kind === 'blob' ? Buffer.from(content, 'latin1') : content
  }
  return {
    async execute({ sql, values }) {
      try {
        database.prepare(sql).all(...values.map(given))
        return {}
      } catch (error) {
        return { error: (error as Error).message }
      }
    },
    close: async () => database.close(),
  }
}

/** What others have inserted may be no UTF-8, and Python refuses to make text of it: such columns are read as bytes. */
export function pythonOutside(file: string): Outside {
  const child: ChildProcess = spawn('python3', [new URL('./outside.py', import.meta.url).pathname, file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  const given = ([kind, content]: SqlGiven) => [
    kind,
    kind === 'blob' ? Buffer.from(content, 'latin1').toString('base64') : content,
  ]
  return {
    async execute({ sql, values }) {
      child.stdin?.write(`${JSON.stringify({ sql, values: values.map(given), raw: sql.includes('threadlog_results') })}\n`)
      const { value, done } = await lines.next()
      if (done) throw new Error('the other program has ended')
      const executed = JSON.parse(value) as Executed
      // Of text it cannot encode Python says, at times, what the statement before it came to.
      const sayable = values.every(([kind, content]) => kind !== 'text' || content.isWellFormed())
      return sayable || executed.error === undefined ? executed : { unsayable: true }
    },
    close: () =>
      new Promise((resolve) => {
        child.on('close', () => resolve())
        child.stdin?.end()
      }),
  }
}
