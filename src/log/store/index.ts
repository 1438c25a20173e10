// The tables of a log in SQLite, and what decides, writes and reads them in one process: under a log in a file, and under the replica of a
// log that is elsewhere.
export { busyPause, Connection } from './connection.ts'
export { IN_MEMORY, logId, openDatabase } from './database.ts'
export { closed, isBusy, translate } from './errors.ts'
export { EventStore, FIRST_PAGE, nextLimit } from './event-store.ts'
export { Heads } from './heads.ts'
export { isGone, thisProcess } from './host.ts'
export { live } from './live.ts'
export { install, Projectors } from './projectors.ts'
export { readable } from './readable.ts'
export { fromRow, PARTITION, placeOf, type StoredEvent } from './records.ts'
export { type Channel, type WakeupOptions, Wakeups } from './wakeups.ts'
export { type Participant, Writer } from './writer.ts'
