import { statSync } from 'node:fs'
import { isThreadlogError } from '../../base/index.ts'
import type { LogBackend } from '../../log/index.ts'
import { counted, sizeText } from '../format.ts'
import { openAddress } from '../logs.ts'
import type { Finding } from './findings.ts'

/** From so many bytes on somebody keeps the WAL from being taken over into the file. */
const LARGE_WAL = 64_000_000

/** Looks at a log in a file; writes nothing. */
export async function sqliteFindings(address: string): Promise<Finding[]> {
  let backend: LogBackend
  try {
    backend = await openAddress(address, { readOnly: true })
  } catch (error) {
    if (!isThreadlogError(error) || error.code === 'log_url_invalid' || error.code === 'log_missing') throw error
    return [{ name: 'file', state: 'error', says: error.message, facts: { code: error.code } }]
  }
  try {
    return [integrity(backend), wal(address), owners(backend), ...projectors(backend)]
  } finally {
    await backend.close()
  }
}

function integrity({ tables }: LogBackend): Finding {
  const rows = tables.all<{ integrity_check: string }>('PRAGMA integrity_check(10)').map((row) => row.integrity_check)
  const ok = rows.length === 1 && rows[0] === 'ok'
  return {
    name: 'integrity',
    state: ok ? 'ok' : 'error',
    says: ok ? 'the file is sound' : `damaged: ${rows[0]}`,
    facts: { integrity_check: rows },
  }
}

function wal(address: string): Finding {
  const bytes = sizeOf(`${address.slice('sqlite:'.length)}-wal`)
  const large = bytes >= LARGE_WAL
  const says = large ? `${sizeText(bytes)}: some process reads for very long` : sizeText(bytes)
  return { name: 'wal', state: large ? 'warning' : 'ok', says, facts: { bytes } }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

function owners({ tables }: LogBackend): Finding {
  const sql = 'SELECT owner_id AS id, pid, expires_at FROM owners WHERE expires_at > ? ORDER BY owner_id'
  const found = tables.all<{ id: string; pid: number; expires_at: number }>(sql, Date.now())
  return {
    name: 'owners',
    state: 'ok',
    says: `${counted(found.length, 'process')} alive`.replace('processs', 'processes'),
    facts: { owners: found.map(({ id, pid }) => ({ id, pid })) },
  }
}

function projectors({ tables }: LogBackend): Finding[] {
  const found = tables.all<{ name: string; version: number; next: number | null }>(
    'SELECT name, version, next FROM projectors ORDER BY name',
  )
  if (found.length === 0) return [{ name: 'projectors', state: 'ok', says: 'none installed yet', facts: {} }]
  return found.map(({ name, version, next }) => ({
    name: 'projectors',
    state: next === null ? 'ok' : 'warning',
    says:
      next === null ? `${name} is at the end of the log` : `${name} is behind: whoever opens the log for writing brings it up`,
    facts: { projector: name, version, next },
  }))
}
