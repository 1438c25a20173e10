import { reject, systemClock } from '../../base/index.ts'
import type { EventLog, LogBackend, Projector } from '../ports.ts'
import { GroupAssignment } from './assignment.ts'
import { CLOSE_MS, within } from './connection.ts'
import { type KafkaEventsOptions, openKafkaEvents } from './events.ts'
import { KafkaOwners } from './owners.ts'
import { PUBLISHER, Publisher } from './publisher.ts'
import { topicName } from './topic-plan.ts'
import { KafkaTopics } from './topics.ts'

export interface KafkaLogOptions extends KafkaEventsOptions {
  /** For looking only: gives no sign of life and writes nothing to the cluster. The replica is kept up all the same. */
  readOnly?: boolean
}

const refuse = async (): Promise<never> => {
  throw reject('log_read_only', 'The log was opened read-only.', { hint: 'Open it for writing.' })
}

/** The log without a right to append. */
function lookedAt(log: EventLog): EventLog {
  return Object.assign(log, { append: refuse })
}

/**
 * Opens a log on Kafka. Its topics must exist (`threadlog topics create`).
 * @throws ThreadlogError as {@link openKafkaEvents}
 */
export async function openKafkaLog(options: KafkaLogOptions): Promise<LogBackend> {
  const { clock = systemClock, onTrouble = () => {} } = options
  const events = await openKafkaEvents(options)
  const { kafka, prefix, reader } = events
  const { partitions } = events.log
  const commands = topicName(prefix, 'commands')
  const assignment = new GroupAssignment({ kafka, topic: commands, group: `${prefix}.engines`, partitions, onTrouble })
  const topics = new KafkaTopics({ kafka, prefix, partitions, assigned: () => assignment.share, onTrouble })
  events.contentTopic.publishBy((records) => topics.publish('content', records))
  const owners = new KafkaOwners({ kafka, reader, topic: commands, clock, onTrouble })
  let publisher: Publisher | undefined
  /** Those that publish, by name. */
  const published = new Map<string, Projector>()
  const share = () => {
    topics.reassign()
    events.outbox.assign(assignment.share ?? new Set())
    publisher?.assign(assignment.share ?? new Set())
  }
  assignment.onChange(share)

  let closing: Promise<void> | undefined
  const close = () => (closing ??= shut())
  async function shut(): Promise<void> {
    // Each of them may wait for a cluster that is away: they do so together, so that a log is closed in three times CLOSE_MS at
    // most, whatever becomes of the cluster.
    const steps = [
      () => Promise.all([within(CLOSE_MS, publisher?.close()), assignment.close(), owners.close(), events.settle()]),
      () => Promise.all([topics.close(), events.close()]),
    ]
    let first: unknown
    for (const step of steps) await step().catch((error: unknown) => (first ??= error))
    if (first !== undefined) throw first
  }

  /** Projectors that only publish run where a partition is owned, in place of those before; the others in every replica. */
  async function install(projectors: readonly Projector[]): Promise<void> {
    await events.install(projectors.filter((projector) => !projector.publishes))
    const publishing = projectors.filter(({ publishes, name, version }) => publishes && published.get(name)?.version !== version)
    if (publishing.length === 0) return
    await publisher?.close()
    for (const projector of publishing) published.set(projector.name, projector)
    events.outbox.install([...published.values()])
    publisher = new Publisher({
      connection: events.connection,
      wakeups: events.wakeups,
      topics,
      saved: async (partition) => (await topics.progress('events', PUBLISHER, [partition])).get(partition) ?? 0n,
      outbox: events.outbox,
      onTrouble,
    })
    share()
  }

  try {
    if (!options.readOnly) await owners.register()
  } catch (error) {
    await close().catch(() => {})
    throw error
  }
  return {
    events: options.readOnly ? lookedAt(events.log) : events.log,
    topics: options.readOnly ? Object.assign(topics, { publish: refuse, transact: refuse }) : topics,
    content: options.readOnly ? events.content.readOnly() : events.content,
    tables: events.tables,
    voids: () => events.voids(),
    owners,
    assignment,
    install,
    cache: (change) => events.cache(change),
    close,
    [Symbol.asyncDispose]: close,
  }
}
