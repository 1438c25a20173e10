import { existsSync, readFileSync, readlinkSync } from 'node:fs'

/** A process as this host can tell it from every other: start time is in clock ticks since boot. */
export interface ProcessIdentity {
  pid: number
  /** Boot id and pid namespace; empty where the system tells neither, then only expiry proves anything. */
  host: string
  startTime: string
}

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, host: hostIdentity(), startTime: startTimeOf(process.pid) ?? '' }
}

/** True only if `identity` was a process of this host (and of this pid namespace) and is gone. */
export function isGone(identity: ProcessIdentity): boolean {
  const host = hostIdentity()
  if (host === '' || identity.host !== host || identity.startTime === '') return false
  const found = startTimeOf(identity.pid)
  // A system that hides other users' processes says nothing about them.
  if (found === '' || (found === undefined && mayBeAlive(identity.pid))) return false
  return found !== identity.startTime
}

/** Asks the kernel by signal 0: only `ESRCH` says that there is no such process. A zombie still answers, and counts as gone. */
function mayBeAlive(pid: number): boolean {
  if (existsSync(`/proc/${pid}/stat`)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function hostIdentity(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/**
 * Field 22 of `/proc/<pid>/stat`. Undefined when there is no such process, or only its exit status is left (state Z or X).
 * The command name before it may hold blanks and parentheses.
 */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH') return undefined
    return ''
  }
}
