import { type LogBackend, openMemoryLog, type ProjectorTx, type RecordedEvent, type TopicName } from '../../src/log/index.ts'
import { Folds, indexProjectors, type ThreadRow, type WaitRow } from '../../src/projections/index.ts'

/** Projectors fed by hand, also with records no log of this build would write. */
export class ProjectorTables implements AsyncDisposable {
  readonly #backend: LogBackend
  #projectors = indexProjectors(new Folds({ threads: 4, events: 1_000_000 }))
  #log: RecordedEvent[] = []
  readonly published: { topic: TopicName; value: { [name: string]: unknown } }[] = []

  private constructor(backend: LogBackend) {
    this.#backend = backend
  }

  static async open(): Promise<ProjectorTables> {
    const backend = await openMemoryLog()
    await backend.install([])
    const tables = new ProjectorTables(backend)
    const statements = tables.#projectors.flatMap(({ schema }) =>
      schema.split(';').filter((statement) => statement.trim() !== ''),
    )
    await backend.cache((tx) => {
      for (const statement of statements) tx.run(statement)
    })
    return tables
  }

  /** One transaction. With `roll back` it comes to nothing. */
  async apply(records: readonly RecordedEvent[], end: 'commit' | 'roll back' = 'commit'): Promise<void> {
    const [length, published] = [this.#log.length, this.published.length]
    this.#log.push(...records)
    const run = this.#backend.cache((sql) => {
      const tx: ProjectorTx = {
        run: (text, ...values) => sql.run(text, ...values),
        all: (text, ...values) => sql.all(text, ...values),
        get: (text, ...values) => sql.get(text, ...values),
        publish: (topic, { value }) => void this.published.push({ topic, value: JSON.parse(Buffer.from(value).toString()) }),
        read: (stream, after = 0) => this.#log.filter((record) => record.stream === stream && record.version > after),
      }
      for (const projector of this.#projectors) projector.apply(tx, records)
      if (end === 'roll back') throw new Error('rolled back')
    })
    if (end === 'commit') return run
    await run.catch(() => {})
    this.#log.length = length
    this.published.length = published
  }

  /** Another build goes on: it folds anew, and reads the log like this. */
  upgrade(log: readonly RecordedEvent[]): void {
    this.#projectors = indexProjectors(new Folds({ threads: 4, events: 1_000_000 }))
    this.#log = [...log]
  }

  thread(stream: string): ThreadRow | undefined {
    return this.#backend.tables.get<ThreadRow>('SELECT * FROM threads WHERE stream = ?', stream)
  }

  waits(stream: string): WaitRow[] {
    return this.#backend.tables.all<WaitRow>('SELECT * FROM waits WHERE stream = ? ORDER BY continuation_id', stream)
  }

  topic(name: TopicName) {
    return this.published.filter(({ topic }) => topic === name).map(({ value }) => value)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#backend.close()
  }
}
