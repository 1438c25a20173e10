import type { Command } from 'commander'
import { reject } from '../../base/index.ts'
import { openThreadlog, type ThreadHandle } from '../../engine/index.ts'
import type { Context } from '../context.ts'
import { EXIT, usage } from '../errors.ts'
import { jsonArgument } from '../inputs.ts'
import { writing } from '../logs.ts'
import { action, parsed, type Session } from '../options.ts'
import { findThreadRef, refText, type Scope, threadJson } from '../references.ts'
import { parseVersion, readUpTo, type VersionSpec } from '../versions.ts'
import { visible } from '../visible.ts'
import { threadArgument } from './thread-argument.ts'

interface Found {
  handle: ThreadHandle
  /** The thread as it is shown. */
  name: string
  /** The version that `--at` names; undefined for the newest. */
  at: number | undefined
}

/** Opens the log for one act on one thread. */
const acting = (context: Context, text: string, o: Scope & { at?: VersionSpec }, act: (found: Found) => Promise<unknown>) =>
  writing(context.log, async (backend) => {
    const ref = await findThreadRef(backend, text, o)
    if (!ref.key) throw reject('thread_unreadable', 'The names of the thread cannot be read.', { path: 'thread' })
    const at = o.at === undefined ? undefined : (await readUpTo(backend, ref.stream, o.at, context.signal)).at(-1)?.version
    const { application, user, thread } = ref.key
    const threads = await openThreadlog({ log: backend, application })
    try {
      await act({ handle: threads.thread({ user, thread }), name: refText(ref), at })
      return EXIT.done
    } finally {
      await threads.close()
    }
  })

/** `threadlog fork` */
export function forkCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('fork'))
    .summary('a new thread that begins as another one was')
    .description('Copies a thread, as it is or was, to a new one of the same user. Waits that are open stay with the first.')
    .option('--at <version>', 'as it was: a version, -N (N events before the newest), or @<ISO time>', parsed(parseVersion))
    .option('--thread <id>', 'id of the new thread (default: a new one)')
    .option('--supersede', 'it takes the place of the first, which ends with its waits; later results of those are stale-branch')
  action<Scope & { at?: VersionSpec; thread?: string; supersede?: true }, [string]>(command, session, (context, o, text) =>
    acting(context, text, o, async ({ handle, name, at }) => {
      const made = await handle.fork({
        ...(at === undefined ? {} : { at }),
        ...(o.thread === undefined ? {} : { thread: o.thread }),
        ...(o.supersede ? { supersede: true } : {}),
      })
      const said = `${made.key.thread} begins as ${name}${at === undefined ? '' : ` was at version ${at}`}`
      await context.result(
        { thread: threadJson(made.stream, made.key), from: { stream: handle.stream, version: at ?? null } },
        () => [visible(said)],
      )
    }),
  )
}

/** `threadlog steer` */
export function steerCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('steer'))
    .summary('say something to the run that is going on')
    .description('Input for the run that is going on, in whatever process. Its next model request carries it.')
    .requiredOption('--input <text>', 'what the user says')
    .option('--id <id>', 'of the input: repeat it when it is not sure that the command arrived')
  action<Scope & { input: string; id?: string }, [string]>(command, session, (context, o, text) =>
    acting(context, text, o, async ({ handle, name }) => {
      await handle.steer(o.input, o.id === undefined ? {} : { id: o.id })
      await context.result({ thread: threadJson(handle.stream, handle.key), accepted: true }, () => [
        visible(`${name} takes the input with its next request`),
      ])
    }),
  )
}

/** `threadlog reconcile` */
export function reconcileCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('reconcile'))
    .summary('say what became of a call whose outcome is unknown')
    .description(
      'Records what became of a call that was cut off, as somebody found out. The model reads it from its next request on.',
    )
    .argument('<call>', 'id of the call, as `threadlog show` lists it')
    .option('--result <json>', 'what it returned: JSON, @file, or - for standard input')
    .option('--failure <code>', 'it failed, with this code')
    .option('--by <name>', 'who says so, as recorded in the event')
    .option('--reason <text>', 'recorded with it')
  type Options = Scope & { result?: string; failure?: string; by?: string; reason?: string }
  action<Options, [string, string]>(command, session, async (context, o, text, call) => {
    if ((o.result === undefined) === (o.failure === undefined))
      throw usage('reconcile needs either --result or --failure.', { hint: 'threadlog reconcile <thread> <call> --result JSON' })
    const outcome =
      o.failure === undefined
        ? { result: await jsonArgument(o.result as string, '--result') }
        : { failure: { code: o.failure, retryable: false } }
    const { by, reason } = o
    return acting(context, text, o, async ({ handle, name }) => {
      await handle.reconcile(call, outcome, { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) })
      await context.result({ thread: threadJson(handle.stream, handle.key), call_id: call }, () => [
        visible(`${name} knows what became of ${call}`),
      ])
    })
  })
}
