import { type Command, Option } from 'commander'
import type { RunHandle, RunResult } from '../../engine/index.ts'
import { threadName } from '../../events/index.ts'
import type { Context } from '../context.ts'
import { after } from '../deadline.ts'
import { EXIT, timedOut, usage } from '../errors.ts'
import { durationText, parseDuration } from '../format.ts'
import { working } from '../logs.ts'
import { action, parsed, type Session } from '../options.ts'
import { inputOf, keyJson, type RunInput, resultJson, resultLines, runArguments, runPlace } from '../run-input.ts'
import { visible } from '../visible.ts'

interface Options extends RunInput {
  commandId?: string
  wait?: boolean
  timeout?: number
}

/** `threadlog start` */
export function startCommand(program: Command, session: Session): void {
  const command = runArguments(program.command('start').argument('<agent>', 'name of the agent'))
    .summary('ask for a run, done by any engine that has the agent')
    .description(
      'Records that a run is wanted; any engine on this log that has the agent does it. Creates the log if there is none.',
    )
    .option('--command-id <id>', 'repeat it when it is not sure that the command arrived: it asks once')
    .option('--abandon', 'give up what the thread waits for, where its agent wants to hear that')
    .addOption(new Option('--tool-recovery <mode>', 'calls whose outcome is unknown').choices(['never', 'declared', 'always']))
    .addOption(
      new Option('--tool-errors <mode>', "a tool's exception ends the run, or its class is told to the model").choices([
        'throw',
        'return',
      ]),
    )
    .option('--wait', 'wait for the end of the run; a suspension is none')
    .option('--timeout <duration>', 'with --wait: give up after this time', parsed(parseDuration))
    .addHelpText('after', '\nWith --wait, exit code 0 when completed, 1 when failed or cancelled, 3 when --timeout has passed.')
  action<Options, [string, string, string | undefined]>(command, session, async (context, o, agent, threadText, text) => {
    if (o.timeout !== undefined && !o.wait) throw usage('--timeout goes with --wait.')
    const { application, user, thread } = runPlace(threadText, o)
    const input = await inputOf(text, o)
    const { commandId, toolRecovery, toolErrors, abandon } = o
    return working(context.log, { application }, async (threads) => {
      const run = await threads.start({ agent, user, thread, input, commandId, toolRecovery, toolErrors, abandon })
      if (!o.wait) return started(context, run)
      const result = await ending(context, run, o.timeout)
      if (!result) return EXIT.done
      await context.result(resultJson(result), () => resultLines(result).map(visible))
      return result.status === 'completed' ? EXIT.done : EXIT.otherAnswer
    })
  })
}

async function started(context: Context, { runId, key }: RunHandle): Promise<number> {
  await context.result({ run_id: runId, thread: keyJson(key) }, () => [`${runId} on ${threadName(key)}`])
  return EXIT.done
}

/** The end of the run; undefined when interrupted. @throws ThreadlogError `timeout` */
async function ending(context: Context, run: RunHandle, timeout: number | undefined): Promise<RunResult | undefined> {
  const late = timeout === undefined ? undefined : after(timeout)
  try {
    return await run.result({ signal: late ? AbortSignal.any([context.signal, late]) : context.signal })
  } catch (error) {
    if (context.signal.aborted) return undefined
    if (!late?.aborted) throw error
    throw timedOut(`The run has not ended within ${durationText(timeout as number)}.`, {
      hint: 'It goes on, if an engine that has the agent is running on this log.',
      details: { run_id: run.runId },
    })
  }
}
