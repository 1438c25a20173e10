import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { cancelCommand } from './commands/cancel.ts'
import { answerCommand, approveCommand, denyCommand } from './commands/decide.ts'
import { doctorCommand } from './commands/doctor.ts'
import { engineCommand } from './commands/engine.ts'
import { replayCommand } from './commands/replay.ts'
import { resultsCommand } from './commands/results.ts'
import { runCommand } from './commands/run.ts'
import { schemaCommands } from './commands/schemas.ts'
import { showCommand } from './commands/show.ts'
import { startCommand } from './commands/start.ts'
import { stateCommand } from './commands/state.ts'
import { forkCommand, reconcileCommand, steerCommand } from './commands/thread-acts.ts'
import { threadsCommand } from './commands/threads.ts'
import { topicAdminCommands } from './commands/topic-admin.ts'
import { topicCommands } from './commands/topics.ts'
import { verifyCommand } from './commands/verify.ts'
import { waitCommand, waitsCommand } from './commands/waits.ts'
import { globalOptions, type Session } from './options.ts'

const AFTER = `
The log is --log, else THREADLOG_LOG, else sqlite:./threadlog.db; only run, start and engine create it. A log on Kafka is
kafka://host:port[,host:port…]/prefix, made by topics create. Options behind ?: replica=FILE (default: one in the user's cache);
tls=true, with ca=, cert= and key=FILE; sasl=plain, scram-sha-256 or scram-sha-512, with THREADLOG_KAFKA_USERNAME and
THREADLOG_KAFKA_PASSWORD or THREADLOG_KAFKA_PASSWORD_FILE.
Results go to standard output, everything else to standard error. JSON carries "schema": "threadlog.cli/1".

Exit codes:
  0        done, and the answer is the good one
  1        done, and it is the other one: verify found damage, a topic differs, a run failed, a verdict is not accepted or duplicate
  2        used wrongly
  3        the log could not be reached or read, or time is up: trying again may help
  4        refused: no such thread, wait or version, not permitted, too large
  5        somebody has to look at the log
  130, 143 interrupted by SIGINT or SIGTERM, after a clean close

Examples:
  threadlog run ./agent.ts new 'Refund order 991'
  threadlog waits --kind approval
  threadlog wait 7f3aQk2p
  threadlog show shop/u-17/order_991 --groups
  threadlog replay shop/u-17/order_991 --at -5 | jq .type
  threadlog results send --provider payouts --external-id P-1 --result '{"reference": "R-1"}'
  threadlog verify --all -o jsonl | jq -c 'select(.ok | not)'
  threadlog topics create --log kafka://localhost:9092/shop`

/** Version of this package. */
export const packageVersion = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** The whole command line. Nothing is written and no process ended by it: errors are thrown. */
export function buildProgram(session: Session): Command {
  const program = new Command('threadlog')
    .description('Agent threads on an event log: run them, look at them, answer what they wait for, check them.')
    .version(packageVersion(), '-V, --version', 'the version of threadlog')
    .helpOption('-h, --help', 'what a command does')
    .helpCommand('help [command]', 'what a command does')
    .addHelpText('after', AFTER)
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void session.io.write(text),
      writeErr: (text) => void process.stderr.write(text),
      outputError: () => {},
    })
  globalOptions(program)
  program.commandsGroup('Run:')
  runCommand(program, session)
  startCommand(program, session)
  engineCommand(program, session)
  steerCommand(program, session)
  forkCommand(program, session)
  reconcileCommand(program, session)
  cancelCommand(program, session)
  program.commandsGroup('Look:')
  threadsCommand(program, session)
  showCommand(program, session)
  stateCommand(program, session)
  replayCommand(program, session)
  program.commandsGroup('Answer:')
  waitsCommand(program, session)
  waitCommand(program, session)
  approveCommand(program, session)
  denyCommand(program, session)
  answerCommand(program, session)
  resultsCommand(program, session)
  program.commandsGroup('Edges:')
  topicCommands(program, session)
  program.commandsGroup('Check:')
  verifyCommand(program, session)
  doctorCommand(program, session)
  program.commandsGroup('Set up:')
  topicAdminCommands(program, session)
  schemaCommands(program, session)
  return program
}
