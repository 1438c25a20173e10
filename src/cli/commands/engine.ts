import type { Command } from 'commander'
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
    .addHelpText(
      'after',
      '\nSIGINT and SIGTERM let what is in flight settle and end it with 130 and 143; a second one ends it at once.',
    )
  action<{ app: string; concurrency: number }, [string]>(command, session, async ({ io, log, signal }, o, path) => {
    const agents = await loadAgents(path)
    const threads = await openThreadlog({ log: log as 'memory', application: o.app, agents })
    try {
      const { concurrency } = o
      await threads.serve({
        concurrency,
        onProblem: ({ where, code, message }) => io.note(visible(`problem: ${where}: ${message} (${code})`)),
      })
      const names = agents.map(({ name, revision }) => `${name}@${revision}`).join(', ')
      io.note(visible(`ready: ${names} on ${log}, application ${o.app}`))
      await new Promise<void>((resolve) => (signal.aborted ? resolve() : signal.addEventListener('abort', () => resolve())))
      return EXIT.done
    } finally {
      await threads.close()
    }
  })
}
