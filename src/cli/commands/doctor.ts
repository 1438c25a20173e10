import type { Command } from 'commander'
import { isThreadlogError, type JsonObject } from '../../base/index.ts'
import type { Finding } from '../doctor/findings.ts'
import { kafkaFindings } from '../doctor/kafka.ts'
import { sqliteFindings } from '../doctor/sqlite.ts'
import { EXIT } from '../errors.ts'
import { isKafka, loadKafka } from '../kafka-log.ts'
import { action, type Session } from '../options.ts'
import { registryAt, registryOption } from '../registry-option.ts'
import { type Column, outcomeStyle } from '../table.ts'

/** `threadlog doctor` */
export function doctorCommand(program: Command, session: Session): void {
  const command = program
    .command('doctor')
    .summary('look at what a log stands on')
    .description(
      'On Kafka: topics and their settings, partitions, the replica and whether the log is still the one it was read from, void records, ' +
        'how long acknowledgements take (28 small records to the topic of commands), engines, owners, results without a receipt. In a file: ' +
        'integrity, the WAL, owners, projectors. With --registry also the schemas.',
    )
    .addHelpText('after', '\nExit code 0 when nothing is wrong, warnings included; 1 when something is.')
  registryOption(command, 'also compare the schemas of this registry')
  action<{ registry?: string }, []>(command, session, async (context, o) => {
    const found = isKafka(context.log) ? await kafkaFindings(context.log) : await sqliteFindings(context.log)
    if (o.registry !== undefined) found.push(...(await registryFindings(o.registry)))
    const ok = found.every(({ state }) => state !== 'error')
    if (context.format === 'json') await context.document({ ok, checks: found.map(json) })
    else await context.list('checks', found, json, COLUMNS)
    return ok ? EXIT.done : EXIT.otherAnswer
  })
}

async function registryFindings(url: string): Promise<Finding[]> {
  try {
    const { registered, findings } = await (await loadKafka()).checkSchemas(await registryAt(url))
    if (findings.length === 0)
      return [
        { name: 'registry', state: 'ok', says: `${registered.length} schemas registered`, facts: { schemas: registered.length } },
      ]
    return findings.map(({ subject, problem, found, expected }) => ({
      name: 'registry',
      state: problem === 'missing' ? 'error' : 'warning',
      says: `${subject}: ${found}, not ${expected}`,
      facts: { subject, problem, found, expected },
    }))
  } catch (error) {
    if (!isThreadlogError(error)) throw error
    return [{ name: 'registry', state: 'error', says: error.message, facts: { code: error.code } }]
  }
}

const json = ({ name, state, says, facts }: Finding): JsonObject => ({ check: name, state, says, facts: { ...facts } })

const COLUMNS: Column<Finding>[] = [
  { name: 'STATE', text: ({ state }) => state, style: ({ state }) => outcomeStyle(state) },
  { name: 'CHECK', text: ({ name }) => name },
  { name: 'FOUND', text: ({ says }) => says },
]
