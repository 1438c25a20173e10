export { openSqliteLog, type SqliteLogOptions } from './backend.ts'
export type { WakeupOptions } from './wakeups.ts'
