import type { Command } from 'commander'
import type { JsonObject } from '../../base/index.ts'
import type { KafkaConnection, TopicFinding, TopicLayout } from '../../log/kafka/index.ts'
import type { Context } from '../context.ts'
import { EXIT } from '../errors.ts'
import { counted } from '../format.ts'
import { loadKafka, requireKafka } from '../kafka-log.ts'
import { action, count, type Session } from '../options.ts'
import { type Column, outcomeStyle } from '../table.ts'
import { visible } from '../visible.ts'

interface Options {
  partitions?: number
  replication?: number
}

/** `threadlog topics create` and `threadlog topics check` */
export function topicAdminCommands(program: Command, session: Session): void {
  const group = program
    .command('topics')
    .summary('make and check the topics of a log on Kafka')
    .description('The topics of a log on Kafka: an engine does not start on topics that would lose or reorder events.')
  const create = group
    .command('create')
    .summary('make the topics that are missing')
    .description(
      'Makes the topics that are missing, with their settings; leaves the others as they are. Then checks all of them.',
    )
    .option('--partitions <count>', 'partitions of each topic, fixed for the life of the log (default: 4)', count(1))
    .option('--replication <count>', 'copies of each partition (default: 3, or as many as there are brokers)', count(1))
    .addHelpText('after', '\nExit code 0 when all topics are as they should be, 1 when one differs.')
  const check = group
    .command('check')
    .summary('compare the topics with what they should be')
    .description('Names every topic and setting that differs, and what goes wrong with it. Changes nothing.')
    .option('--partitions <count>', 'partitions each topic should have (default: as many as the events have)', count(1))
    .option('--replication <count>', 'copies each partition should have (default: 3, or as many as there are brokers)', count(1))
    .addHelpText('after', '\nExit code 0 when all topics are as they should be, 1 when one differs.')
  action<Options, []>(create, session, async (context, o) => {
    const { createTopics, checkTopics, clientOf, layout, where } = await opened(context, o)
    const made = await createTopics(clientOf(where), layout)
    return told(context, await checkTopics(clientOf(where), layout), made)
  })
  action<Options, []>(check, session, async (context, o) => {
    const { checkTopics, clientOf, layout, where } = await opened(context, o)
    return told(context, await checkTopics(clientOf(where), layout))
  })
}

async function opened(context: Context, { partitions, replication }: Options) {
  requireKafka(context.log)
  const { kafkaAddress, ...kafka } = await loadKafka()
  const { prefix, replica: _, ...where } = kafkaAddress(context.log)
  const layout: TopicLayout = { prefix, ...(partitions && { partitions }), ...(replication && { replication }) }
  return { ...kafka, layout, where: where as KafkaConnection }
}

async function told(context: Context, findings: readonly TopicFinding[], made?: readonly string[]): Promise<number> {
  if (context.format === 'json')
    await context.document({ ...(made && { made: [...made] }), ok: findings.length === 0, findings: findings.map(findingJson) })
  else {
    for (const topic of made ?? [])
      if (context.format === 'jsonl') await context.record({ made: topic })
      else await context.print(`made ${visible(topic)}`)
    if (context.format === 'jsonl') for (const finding of findings) await context.record({ finding: findingJson(finding) })
    else if (findings.length > 0) await context.table(FINDINGS, findings)
    else
      await context.print(
        `${made ? counted(made.length, 'topic') : 'all topics'} ${made ? 'made, all' : 'are'} as they should be`,
      )
  }
  return findings.length === 0 ? EXIT.done : EXIT.otherAnswer
}

export const findingJson = ({ topic, setting, severity, found, expected, because }: TopicFinding): JsonObject => ({
  topic,
  setting,
  severity,
  found,
  expected,
  because,
})

const FINDINGS: Column<TopicFinding>[] = [
  { name: 'SEVERITY', text: ({ severity }) => severity, style: ({ severity }) => outcomeStyle(severity) },
  { name: 'TOPIC', text: ({ topic }) => topic },
  { name: 'SETTING', text: ({ setting }) => setting },
  { name: 'FOUND', text: ({ found }) => found },
  { name: 'EXPECTED', text: ({ expected }) => expected },
  { name: 'BECAUSE', text: ({ because }) => because },
]
