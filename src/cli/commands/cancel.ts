import type { Command } from 'commander'
import { reject } from '../../base/index.ts'
import { openThreadlog } from '../../engine/index.ts'
import { threadStatus } from '../../projections/index.ts'
import { EXIT } from '../errors.ts'
import { writing } from '../logs.ts'
import { action, type Session } from '../options.ts'
import { findThreadRef, refText, type Scope, threadJson } from '../references.ts'
import { visible } from '../visible.ts'
import { threadArgument } from './thread-argument.ts'

/** `threadlog cancel` */
export function cancelCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('cancel'))
    .summary('end what runs or waits on a thread')
    .description(
      'Ends what a thread does. A suspended or queued run ends at once, with its waits. A running one is asked to stop; its owner does, or ' +
        'any engine when the owner is gone.',
    )
    .option('--reason <text>', 'recorded with the end', 'cancelled')
    .option('--command-id <id>', 'recorded as what caused it')
  action<Scope & { reason: string; commandId?: string }, [string]>(command, session, (context, o, text) =>
    writing(context.log, async (backend) => {
      const ref = await findThreadRef(backend, text, o)
      if (!ref.key) throw reject('thread_unreadable', 'The names of the thread cannot be read.', { path: 'thread' })
      const { application, user, thread } = ref.key
      const threads = await openThreadlog({ log: backend, application })
      try {
        await threads.thread({ user, thread }).cancel({ reason: o.reason, commandId: o.commandId })
        const state = await threads.store.load(ref.stream)
        const asked = threadStatus(state) === 'running'
        const said = `${refText(ref)} ${asked ? 'is asked to stop' : 'has nothing running or waiting'}`
        await context.result({ thread: threadJson(ref.stream, ref.key), status: threadStatus(state) }, () => [visible(said)])
        return EXIT.done
      } finally {
        await threads.close()
      }
    }),
  )
}
