import { spawnSync } from 'node:child_process'

const PROBE = 'import sqlite3, sys; sys.exit(sqlite3.sqlite_version_info < (3, 38))'

/** True if `python3` is here with an SQLite that knows JSON. */
export const hasPython = (): boolean => spawnSync('python3', ['-c', PROBE], { stdio: 'ignore' }).status === 0
