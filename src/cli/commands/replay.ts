import type { Command } from 'commander'
import type { JsonObject } from '../../base/index.ts'
import { looking } from '../logs.ts'
import { action, parsed, type Session, showsPayloads } from '../options.ts'
import { eventJson } from '../records.ts'
import { findThreadRef, type Scope, threadJson } from '../references.ts'
import { parseVersion, recordsUpTo, type VersionSpec } from '../versions.ts'
import { threadArgument } from './thread-argument.ts'

/** `threadlog replay` */
export function replayCommand(program: Command, session: Session): void {
  const command = threadArgument(program.command('replay'))
    .summary('every event of a thread, one JSON record a line')
    .description(
      'Writes every event of a thread in order, one JSON record a line: version, type, time, position, hashes, commit, who caused it, fields. ' +
        'Text and jsonl are the same; json is one document. Payloads are shown in full unless --payloads says otherwise.',
    )
    .option('--at <version>', 'up to a version, -N (N events before the newest), or @<ISO time>', parsed(parseVersion))
  action<Scope & { at?: VersionSpec }, [string]>(
    showsPayloads(command, 'full'),
    session,
    async (context, o, reference) => {
      const form = o.payloads ?? 'full'
      await looking(context.log, async (backend) => {
        const ref = await findThreadRef(backend, reference, o)
        const records = recordsUpTo(backend, ref.stream, { at: o.at, signal: context.signal })
        if (context.format === 'json') {
          const events: JsonObject[] = []
          for await (const record of records) events.push(eventJson(record, form))
          return context.document({ thread: threadJson(ref.stream, ref.key), events })
        }
        for await (const record of records) await context.record(eventJson(record, form))
      })
    },
    { records: true },
  )
}
