import type { Command } from 'commander'
import type { JsonObject } from '../../base/index.ts'
import type { RegisteredSchema, SchemaFinding } from '../../log/kafka/index.ts'
import { EXIT } from '../errors.ts'
import { counted } from '../format.ts'
import { loadKafka } from '../kafka-log.ts'
import { action, type Session } from '../options.ts'
import { registryAt, registryOption } from '../registry-option.ts'
import type { Column } from '../table.ts'

/** `threadlog schemas register` and `threadlog schemas check` */
export function schemaCommands(program: Command, session: Session): void {
  const group = program
    .command('schemas')
    .summary('put the schemas into a registry and compare them')
    .description(
      "The Avro schemas of events and edge messages in a registry with Confluent's protocol, each under the full name of its record. " +
        'User and password: THREADLOG_REGISTRY_USERNAME, and THREADLOG_REGISTRY_PASSWORD or THREADLOG_REGISTRY_PASSWORD_FILE.',
    )
  const register = group
    .command('register')
    .summary('register all schemas')
    .description(
      'Sets each subject to FULL_TRANSITIVE, then registers its schemas. What is registered already keeps its id. Shows the ids.',
    )
  const check = group
    .command('check')
    .summary('compare a registry with the schemas of this version')
    .description(
      'Names every schema that is missing, every level that is another, every subject that has something newer. Changes nothing.',
    )
    .addHelpText('after', '\nExit code 0 when everything is registered, 1 when something differs.')
  const registry = 'base address of the registry, with the path it serves the protocol under'
  action<{ registry?: string }, []>(registryOption(register, registry), session, async (context, o) => {
    const where = await registryAt(o.registry)
    const registered = await (await loadKafka()).registerSchemas(where)
    await context.list('schemas', registered, registeredJson, REGISTERED)
  })
  action<{ registry?: string }, []>(registryOption(check, registry), session, async (context, o) => {
    const where = await registryAt(o.registry)
    const { registered, findings } = await (await loadKafka()).checkSchemas(where)
    const ok = findings.length === 0
    if (context.format === 'json')
      await context.document({ ok, findings: findings.map(schemaFindingJson), schemas: registered.map(registeredJson) })
    else if (context.format === 'jsonl') for (const finding of findings) await context.record(schemaFindingJson(finding))
    else if (ok) await context.print(`${counted(registered.length, 'schema')} registered, nothing differs`)
    else await context.table(FINDINGS, findings)
    return ok ? EXIT.done : EXIT.otherAnswer
  })
}

const registeredJson = ({ type, subject, pinned, id }: RegisteredSchema): JsonObject => ({ type, subject, pinned_id: pinned, id })

const REGISTERED: Column<RegisteredSchema>[] = [
  { name: 'ID', text: ({ id }) => String(id), right: true },
  { name: 'PINNED', text: ({ pinned }) => String(pinned), right: true },
  { name: 'TYPE', text: ({ type }) => type },
  { name: 'SUBJECT', text: ({ subject }) => subject },
]

const schemaFindingJson = ({ type, subject, problem, found, expected }: SchemaFinding): JsonObject => ({
  type,
  subject,
  problem,
  found,
  expected,
})

const FINDINGS: Column<SchemaFinding>[] = [
  { name: 'PROBLEM', text: ({ problem }) => problem },
  { name: 'SUBJECT', text: ({ subject }) => subject },
  { name: 'FOUND', text: ({ found }) => found },
  { name: 'EXPECTED', text: ({ expected }) => expected },
]
