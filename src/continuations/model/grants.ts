import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { exactKeys, invalidArgument, matching } from './arguments.ts'

const permission = matching(/^[A-Za-z][A-Za-z0-9._:-]{0,127}$/, 'a letter, then up to 127 of letters, digits, . _ : -')

/** Whom a run acts for: an opaque id, fresh at each restore, and what it may do. */
export interface Principal {
  readonly id: string
  readonly permissions: readonly string[]
}

/**
 * What a suspended run was allowed to do, kept beside its wait and given back to whichever process resumes it (continuation spec §1.6). Names
 * only: no identity, no credential. No snapshot at all means that nothing was restricted; an empty one allows nothing.
 */
export class PrincipalGrantSnapshot {
  readonly version = 1
  /** Sorted, each once. */
  readonly permissions: readonly string[]

  /** @throws ThreadlogError `invalid_argument` */
  constructor(o: { permissions: readonly string[]; version?: 1 }) {
    const { permissions, version = 1 } = o
    if (version !== 1) throw invalidArgument('version', '1')
    if (!Array.isArray(permissions)) throw invalidArgument('permissions', 'a list of permission names')
    for (const [i, name] of permissions.entries()) permission(name, `permissions[${i}]`)
    this.permissions = Object.freeze([...new Set(permissions)].sort())
    Object.freeze(this)
  }

  /** The permissions of a principal; null stays null. @throws ThreadlogError `invalid_argument` */
  static capture(principal: { permissions: readonly string[] } | null): PrincipalGrantSnapshot | null {
    if (principal === null) return null
    if (typeof principal !== 'object' || !Array.isArray(principal.permissions)) throw invalidArgument('principal', 'a principal')
    return new PrincipalGrantSnapshot({ permissions: principal.permissions })
  }

  /** A principal with a new id and exactly these permissions. */
  restore(): Principal {
    return Object.freeze({ id: `arp_${randomBytes(16).toString('hex')}`, permissions: this.permissions })
  }

  /** Reads the persisted form: exactly `version` and `permissions`. @throws ThreadlogError `invalid_argument` */
  static parse(value: unknown): PrincipalGrantSnapshot {
    const { version, permissions } = exactKeys(value, ['version', 'permissions'], 'principal_grants')
    return new PrincipalGrantSnapshot({ permissions: permissions as string[], version: version as 1 })
  }

  equals(other: PrincipalGrantSnapshot): boolean {
    return this.permissions.length === other.permissions.length && this.permissions.every((p, i) => p === other.permissions[i])
  }

  toJSON(): { version: 1; permissions: string[] } {
    return { version: 1, permissions: [...this.permissions] }
  }

  /** Logs do not show what a person may do. */
  [inspect.custom](): string {
    return 'PrincipalGrantSnapshot {…}'
  }
}
