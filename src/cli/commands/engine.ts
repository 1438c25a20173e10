import { type Command, InvalidArgumentError } from 'commander'
import { errorClass, isThreadlogError } from '../../base/index.ts'
import type { SchemaSource } from '../../events/index.ts'
import type { TopicFinding } from '../../log/kafka/index.ts'
import { loadAgents } from '../agents.ts'
import { EXIT } from '../errors.ts'
import { isKafka, loadKafka } from '../kafka-log.ts'
import { working } from '../logs.ts'
import { action, count, type Session } from '../options.ts'
import { registryAt, registryOption } from '../registry-option.ts'
import { visible } from '../visible.ts'

/** `threadlog engine` */
export function engineCommand(program: Command, session: Session): void {
  const command = program
    .command('engine')
    .summary('serve the agents of a module until stopped')
    .description(
      'Serves agents: does the runs asked for, judges results, resumes what was answered, recovers what was left. Any number of engines may ' +
        'serve one log. Creates the log if there is none. Says on standard error when it is ready and what goes wrong.',
    )
    .argument('<module>', 'module that exports `agents`, or an agent as default')
    .option('--app <application>', 'application of results that name none', 'default')
    .option('--concurrency <count>', 'runs at once', count(1), 64)
    .option(
      '--http [port]',
      'also take results by POST /results on this host (any free port if none is given); token: THREADLOG_TOKEN, or made',
    )
    .addHelpText(
      'after',
      '\nSIGINT and SIGTERM let what is in flight settle and end it with 130 and 143; a second one ends it at once.',
    )
  registryOption(command, 'take results in Avro with the schema ids of this registry, read once at start')
  action<{ app: string; concurrency: number; http?: true | string; registry?: string }, [string]>(
    command,
    session,
    async ({ io, log, signal }, o, path) => {
      const agents = await loadAgents(path)
      const resultSchemas = o.registry === undefined ? undefined : await resultSchemasOf(o.registry, log)
      const problem = (where: string, code: string, message: string) =>
        io.note(visible(`problem: ${where}: ${message} (${code})`))
      return working(
        log,
        { application: o.app, agents, resultSchemas, onTrouble: (trouble) => problem('log', ...troubleOf(trouble)) },
        async (threads) => {
          const { concurrency, http } = o
          const engine = await threads.serve({
            concurrency,
            ...(http === undefined ? {} : { http: http === true ? {} : { port: portOf(http) } }),
            onProblem: ({ where, code, message }) => problem(where, code, message),
          })
          const names = agents.map(({ name, revision }) => `${name}@${revision}`).join(', ')
          if (engine.http) {
            const token = process.env['THREADLOG_TOKEN'] === undefined ? engine.http.token : 'in THREADLOG_TOKEN'
            io.note(`results: POST ${engine.http.url}/results, token ${token}`)
          }
          io.note(visible(`ready: ${names} on ${log}, application ${o.app}`))
          const stopped = new Promise<void>((resolve) =>
            signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve()),
          )
          const failure = await Promise.race([stopped, engine.failed])
          if (failure !== undefined) throw failure
          return EXIT.done
        },
      )
    },
  )
}

/** Schemas of results in Avro, with the ids of a registry: fetched now, kept as long as the engine runs. */
async function resultSchemasOf(url: string, log: string): Promise<SchemaSource> {
  const { fetchResultSchemas, kafkaAddress } = await loadKafka()
  const topic = isKafka(log) ? `${kafkaAddress(log).prefix}.results` : undefined
  return fetchResultSchemas(await registryAt(url), { topic })
}

/** What the log tells of: an error, or a setting of a topic that is only unwise. */
function troubleOf(trouble: unknown): [code: string, message: string] {
  if (isThreadlogError(trouble)) return [trouble.code, trouble.path ? `${trouble.path}: ${trouble.message}` : trouble.message]
  const { topic, setting, found, because } = trouble as Partial<TopicFinding>
  if (topic !== undefined) return ['topic_setting', `${topic} has ${setting} = ${found}: ${because}`]
  return ['unexpected', errorClass(trouble) ?? 'unknown']
}

function portOf(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new InvalidArgumentError('A port is a number from 0 to 65535.')
}
