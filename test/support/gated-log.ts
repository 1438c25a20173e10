import type { EventType, LogEvent } from '../../src/events/index.ts'
import type { LogBackend } from '../../src/log/index.ts'

/** A log on which commits with events of some types wait before they are sent, and may wait after they were accepted. */
export interface GatedLog {
  log: LogBackend
  /** Resolves when such a commit stands at its gate. */
  reached: Promise<void>
  open(): void
}

/**
 * @param o.after the commit is in the log, and its writer does not hear of it yet
 * @param o.isMeant which events of the type; default all
 */
export function gatedLog(
  backend: LogBackend,
  type: EventType,
  o: { after?: boolean; isMeant?: (event: LogEvent) => boolean } = {},
): GatedLog {
  const [reached, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const gate = async () => {
    reached.resolve()
    await opened.promise
  }
  const { events } = backend
  const append: typeof events.append = async (commit) => {
    const isMeant = commit.records.some(({ event }) => event.type === type && (o.isMeant?.(event) ?? true))
    if (isMeant && !o.after) await gate()
    const appended = await events.append(commit)
    if (isMeant && o.after) await gate()
    return appended
  }
  const bound = <T extends object>(target: T, name: keyof T) => {
    const value = target[name]
    return typeof value === 'function' ? value.bind(target) : value
  }
  const gated = new Proxy(events, {
    get: (target, name) => (name === 'append' ? append : bound(target, name as keyof typeof target)),
  })
  const log = new Proxy(backend, {
    get: (target, name) => (name === 'events' ? gated : bound(target, name as keyof typeof target)),
  })
  return { log, reached: reached.promise, open: opened.resolve }
}
