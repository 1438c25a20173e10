export type { WakeupOptions } from '../store/index.ts'
export { openSqliteLog, type SqliteLogOptions } from './backend.ts'
