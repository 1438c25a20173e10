import { type Command, InvalidArgumentError } from 'commander'
import { openThreadlog } from '../../engine/index.ts'
import { loadAgents } from '../agents.ts'
import { EXIT } from '../errors.ts'
import { action, count, type Session } from '../options.ts'
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
  action<{ app: string; concurrency: number; http?: true | string }, [string]>(
    command,
    session,
    async ({ io, log, signal }, o, path) => {
      const agents = await loadAgents(path)
      const threads = await openThreadlog({ log: log as 'memory', application: o.app, agents })
      try {
        const { concurrency, http } = o
        const engine = await threads.serve({
          concurrency,
          ...(http === undefined ? {} : { http: http === true ? {} : { port: portOf(http) } }),
          onProblem: ({ where, code, message }) => io.note(visible(`problem: ${where}: ${message} (${code})`)),
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
      } finally {
        await threads.close()
      }
    },
  )
}

function portOf(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new InvalidArgumentError('A port is a number from 0 to 65535.')
}
