import { reject } from '../../base/index.ts'
import type { Sql, SqlValue } from '../ports.ts'
import type { Connection } from './connection.ts'

/** The projection tables for reading; writing goes through projectors and `cache`. */
export function readable(connection: Connection): Sql {
  return {
    run() {
      throw reject('tables_read_only', 'The tables are written by projectors, and caches inside `cache`.')
    },
    all: <Row>(sql: string, ...values: SqlValue[]) => connection.look(() => connection.all<Row>(sql, ...values)),
    get: <Row>(sql: string, ...values: SqlValue[]) => connection.look(() => connection.get<Row>(sql, ...values)),
  }
}
