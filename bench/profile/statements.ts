import { DatabaseSync, type StatementSync } from 'node:sqlite'

const CALLS = ['run', 'get', 'all'] as const

/** Gives each prepared statement calls that carry its text in a profile, as `sql_INSERT_INTO_events…`. Before anything is prepared. */
export function nameStatements(): void {
  const prepare = DatabaseSync.prototype.prepare
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string) {
    const statement = prepare.call(this, sql) as StatementSync
    for (const call of CALLS) Object.defineProperty(statement, call, { value: named(sql, statement[call].bind(statement)) })
    return statement
  }
}

/** Profiles show the name a function has in its source, so there has to be one for each statement. */
function named(sql: string, original: unknown): unknown {
  const name = `sql_${sql.trim().replace(/\W+/g, '_').slice(0, 400)}`
  return new Function('original', `return function ${name}(...values) { return original(...values) }`)(original)
}
