import { type Command, Option } from 'commander'
import type { JsonValue } from '../../base/index.ts'
import type { RunResult, RunStream } from '../../engine/index.ts'
import { chooseAgent, loadAgents } from '../agents.ts'
import type { Context } from '../context.ts'
import { EXIT } from '../errors.ts'
import { isoTime } from '../format.ts'
import { LineText } from '../line-text.ts'
import { working } from '../logs.ts'
import { action, type Session } from '../options.ts'
import { inputOf, type RunInput, resultJson, resultLines, runArguments, runPlace } from '../run-input.ts'
import { visible } from '../visible.ts'

/** `threadlog run` */
export function runCommand(program: Command, session: Session): void {
  const command = runArguments(
    program.command('run').argument('<module>', 'module that exports an agent as default, or `agents`'),
  )
    .summary('run an agent on a thread, in this process')
    .description(
      'Runs an agent on a thread until it ends or waits for somebody. Creates the log if there is none. In text, what the model says goes to ' +
        'standard output as it comes and how the run ended to standard error; json is the result; jsonl tells every event and ends with the result.',
    )
    .option('--agent <name>', 'which agent of the module')
    .option('--abandon', 'give up what the thread waits for, where its agent wants to hear that')
    .addOption(new Option('--tool-recovery <mode>', 'calls whose outcome is unknown').choices(['never', 'declared', 'always']))
    .addOption(
      new Option('--tool-errors <mode>', "a tool's exception ends the run, or its class is told to the model").choices([
        'throw',
        'return',
      ]),
    )
    .addHelpText(
      'after',
      '\nExit code 0 when completed or suspended, 1 when failed or cancelled. SIGINT and SIGTERM cancel the run.',
    )
  action<RunInput & { agent?: string }, [string, string, string | undefined]>(
    command,
    session,
    async (context, o, path, threadText, text) => {
      const place = runPlace(threadText, o)
      const input = await inputOf(text, o)
      const agents = await loadAgents(path)
      const agent = chooseAgent(agents, o.agent, path)
      const { application, user, thread } = place
      const { toolRecovery, toolErrors, abandon } = o
      const options = { user, thread, input, toolRecovery, toolErrors, abandon, signal: context.interrupt }
      return working(context.log, { application, agents }, async (threads) => {
        const result = await tell(context, threads.stream(agent, options))
        return result.status === 'failed' || result.status === 'cancelled' ? EXIT.otherAnswer : EXIT.done
      })
    },
  )
}

/** Tells a run while it goes on; a reader that has gone does not stop it. */
async function tell(context: Context, stream: RunStream): Promise<RunResult> {
  if (context.format === 'json') {
    const result = await stream.result
    await context.document(resultJson(result))
    return result
  }
  const line = new LineText((text) => context.io.write(text))
  for await (const event of stream) {
    if (context.format === 'jsonl')
      await context.record(event.type === 'result' ? { type: 'result', ...resultJson(event.result) } : recordOf(event))
    else if (event.type === 'text') await line.add(event.text)
    else if (event.type === 'event' && event.event === 'model.responded/1') await line.end()
  }
  const result = await stream.result
  if (context.format === 'text') {
    await line.end()
    for (const text of resultLines(result)) context.io.note(visible(text))
  }
  return result
}

function recordOf(event: { type: string } & Record<string, unknown>): { [key: string]: JsonValue } {
  const { time, callId, toolName, argsText, ...rest } = event as Record<string, JsonValue>
  return {
    ...rest,
    ...(typeof time === 'number' && { time: isoTime(time) }),
    ...(callId !== undefined && { call_id: callId, tool: toolName ?? '', args_text: argsText ?? '' }),
  } as { [key: string]: JsonValue }
}
