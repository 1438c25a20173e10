import { CONTENT_TABLE } from './content.ts'
import { VIEWS } from './views.ts'

/** Marks the file as a threadlog log (`PRAGMA application_id`): the bytes "tlog". */
export const APPLICATION_ID = 0x746c6f67

/** Format of the file. A file with a newer one is not opened. */
export const FORMAT = 1

const topic = (name: string): string => `
CREATE TABLE ${name}(
  offset INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  value BLOB NOT NULL,
  headers TEXT,
  time INTEGER NOT NULL
);`

/**
 * The tables. `events.id` counts up in the order events were accepted here, `value` is the record in wire form. In a log the id is the
 * offset; in a replica `place` says where the record stands in the log itself, see {@link placeOf}. `projectors.next` is the first event not yet
 * applied, null when none is missing. `owners.host` is the boot id and the pid namespace. Only the views are for other programs.
 */
export const SCHEMA = `
CREATE TABLE meta(name TEXT PRIMARY KEY, value);
CREATE TABLE streams(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE);
CREATE TABLE events(
  id INTEGER PRIMARY KEY,
  stream INTEGER NOT NULL,
  version INTEGER NOT NULL,
  value BLOB NOT NULL,
  place INTEGER,
  UNIQUE(stream, version)
);
${['requests', 'results', 'receipts', 'checkpoints'].map(topic).join('\n')}
${CONTENT_TABLE}
CREATE TABLE progress(topic TEXT NOT NULL, group_name TEXT NOT NULL, next INTEGER NOT NULL, PRIMARY KEY(topic, group_name));
CREATE TABLE projectors(name TEXT PRIMARY KEY, version INTEGER NOT NULL, next INTEGER, published INTEGER NOT NULL);
CREATE TABLE owners(
  owner_id TEXT PRIMARY KEY,
  pid INTEGER NOT NULL,
  host TEXT NOT NULL,
  start_time TEXT NOT NULL,
  expires_at INTEGER NOT NULL
);
${VIEWS}
PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${FORMAT};
`
