import type { Command } from 'commander'
import { reject } from '../../base/index.ts'
import { type Folded, foldStream, harnessState } from '../../projections/index.ts'
import { looking } from '../logs.ts'
import { action, parsed, type Session } from '../options.ts'
import { findThreadRef, type Scope, threadJson } from '../references.ts'
import { parseVersion, readUpTo, type VersionSpec } from '../versions.ts'
import { visibleJsonText } from '../visible.ts'
import { threadArgument } from './thread-argument.ts'

/** `threadlog state` */
export function stateCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('state'))
    .summary('a thread as HarnessState JSON')
    .description(
      'Writes the thread as HarnessState JSON, which resumes elsewhere: in text the bare state, in json and jsonl under `state`, with its version and hash.',
    )
    .option('--at <version>', 'as it was: a version, -N (N events before the newest), or @<ISO time>', parsed(parseVersion))
  action<Scope & { at?: VersionSpec }, [string]>(command, session, async (context, o, reference) => {
    const { ref, folded, state } = await looking(context.log, async (backend) => {
      const ref = await findThreadRef(backend, reference, o)
      const folded = foldStream(await readUpTo(backend, ref.stream, o.at, context.signal))
      return { ref, folded, state: harnessState(usable(folded)) }
    })
    const { version, hash } = folded.head
    await context.result({ thread: threadJson(ref.stream, folded.state.identity), version, hash, state: state.toJSON() }, () => [
      visibleJsonText(state.toText()),
    ])
  })
}

function usable({ state, quarantine }: Folded): Folded['state'] {
  if (!quarantine) return state
  throw reject('thread_quarantined', `The event at version ${quarantine.version} cannot be folded (${quarantine.code}).`, {
    path: 'thread',
    hint: `Its state before that: --at ${quarantine.version - 1}`,
    details: { version: quarantine.version, code: quarantine.code, offset: String(quarantine.position.offset) },
  })
}
