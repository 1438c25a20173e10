import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { isJsonObject, type JsonObject, type JsonValue, reject } from '../../base/index.ts'
import type { Answer, Receipt } from '../../continuations/index.ts'
import { openThreadlog, type Threadlog } from '../../engine/index.ts'
import type { Context } from '../context.ts'
import { EXIT, usage } from '../errors.ts'
import { jsonArgument } from '../inputs.ts'
import { isInteractive } from '../io.ts'
import { writing } from '../logs.ts'
import { action, type Session, showsPayloads } from '../options.ts'
import type { PayloadForm } from '../payloads.ts'
import { showReceipt } from '../receipt-view.ts'
import { visibleJson } from '../visible.ts'
import { findWaitView, type WaitView, waitLines } from '../wait-view.ts'

interface Quoted {
  digest?: string
  by?: string
  reason?: string
  commandId?: string
}

const WAIT = ['<wait>', 'id of the wait, or its first 8 or more characters'] as const
const DIGEST = 'the proposal as it was shown (64 hexadecimal digits); another one is refused as proposal-changed'
const EXIT_NOTE = '\nExit code 0 when the verdict is accepted or duplicate, 1 for any other.'

const quoting = (command: Command): Command =>
  command
    .option('--digest <digest>', DIGEST)
    .option('--by <name>', 'who decides, as recorded in the event (default: the user of this process)')
    .option('--command-id <id>', 'repeat it when it is not sure that the command arrived: it counts once')
    .addHelpText('after', EXIT_NOTE)

/** `threadlog approve` */
export function approveCommand(program: Command, session: Session): void {
  const command = quoting(program.command('approve'))
    .summary('let a proposed call run')
    .description(
      'Approves a proposed call. On a terminal it shows tool, arguments and digest and asks; elsewhere it needs --yes and --digest.',
    )
    .argument(...WAIT)
    .option('--reason <text>', 'recorded with the decision')
    .option('--override-args <json>', 'run the call with these arguments instead: JSON, @file, or - for standard input')
    .option('--yes', 'do not ask')
  action<Quoted & { overrideArgs?: string; yes?: boolean }, [string]>(showsPayloads(command), session, async (context, o, id) => {
    const digest = checkedDigest(o.digest)
    if (!isInteractive() && !(o.yes && digest))
      throw usage('Off a terminal, approve needs --yes and --digest.', { hint: `threadlog wait ${id} shows the digest.` })
    const overrideArgs =
      o.overrideArgs === undefined ? undefined : objectOf(await jsonArgument(o.overrideArgs, '--override-args'))
    return deciding(context, id, 'approval', async (threads, view) => {
      const shown = view.wait.item.proposal_digest
      if (!o.yes && !(await confirmed(context, view, o.payloads ?? 'full', overrideArgs))) return undefined
      return threads.approve(view.wait.id, { ...decisionOf(o), digest: digest ?? shown, overrideArgs })
    })
  })
}

/** `threadlog deny` */
export function denyCommand(program: Command, session: Session): void {
  const command = quoting(program.command('deny'))
    .summary('refuse a proposed call')
    .description('Refuses a proposed call; the model reads the reason. Nothing runs, so nothing is asked.')
    .argument(...WAIT)
    .option('--reason <text>', 'what the model is told')
  action<Quoted, [string]>(command, session, (context, o, id) =>
    deciding(context, id, 'approval', (threads, { wait }) =>
      threads.deny(wait.id, { ...decisionOf(o), digest: checkedDigest(o.digest) }),
    ),
  )
}

/** `threadlog answer` */
export function answerCommand(program: Command, session: Session): void {
  const command = quoting(program.command('answer'))
    .summary('answer a question of an agent')
    .description('Answers a question: chosen labels or free text by question, or one response to all of them.')
    .argument(...WAIT)
    .option(
      '--result <json>',
      '{"answers": {question: label or text or list}, "response": text}: JSON, @file, or - for standard input',
    )
    .option('--response <text>', 'a response in free text')
  action<Quoted & { result?: string; response?: string }, [string]>(command, session, async (context, o, id) => {
    if ((o.result === undefined) === (o.response === undefined)) throw usage('Give either --result or --response.')
    const value = o.result === undefined ? { response: o.response } : answerOf(await jsonArgument(o.result, '--result'))
    return deciding(context, id, 'question', (threads, { wait }) =>
      threads.answer(wait.id, value, { ...decisionOf(o), digest: checkedDigest(o.digest) }),
    )
  })
}

/** Finds the wait, lets `decide` submit, shows the receipt. `decide` answers undefined when the person said no. */
function deciding(
  context: Context,
  id: string,
  kind: 'approval' | 'question',
  decide: (threads: Threadlog, view: WaitView) => Promise<Receipt | undefined>,
): Promise<number> {
  return writing(context.log, async (backend) => {
    const view = await findWaitView(backend, id)
    const { item, provider } = view.wait
    if (item.kind !== kind)
      throw reject('wait_kind_mismatch', `The wait is no ${kind}.`, {
        path: 'wait',
        expected: `a wait of kind ${kind}; this one is ${item.kind}, answered by ${provider}`,
        hint: item.kind === 'external' ? 'threadlog results send answers it.' : undefined,
      })
    const threads = await openThreadlog({ log: backend, application: view.row.application })
    try {
      const receipt = await decide(threads, view)
      if (receipt) return await showReceipt(context, receipt)
      context.io.note('Nothing was decided.')
      return EXIT.otherAnswer
    } finally {
      await threads.close()
    }
  })
}

/** Shows all of the proposal on standard error, and asks. */
async function confirmed(
  context: Context,
  view: WaitView,
  form: PayloadForm,
  overrideArgs: JsonObject | undefined,
): Promise<boolean> {
  const { io, signal } = context
  for (const line of waitLines(view, form, (ms) => context.timeText(ms))) io.note(line)
  if (overrideArgs) io.note(`${'instead'.padEnd(12)}${visibleJson(overrideArgs)}`)
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  // On a terminal, control keys come as input: an interruption is passed on, an end of input is a no.
  prompt.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  const ended = new Promise<string>((resolve) => prompt.once('close', () => resolve('')))
  const asked = prompt.question('Approve this call? [y/N] ', { signal }).catch(() => '')
  const reply = await Promise.race([asked, ended])
  prompt.close()
  return !signal.aborted && /^y(es)?$/i.test(reply.trim())
}

const decisionOf = ({ by, reason, commandId }: Quoted) => ({ by: by ?? currentUser(), reason, commandId })

function currentUser(): string {
  try {
    return userInfo().username
  } catch {
    // A process whose user has no entry in the user database.
    return ''
  }
}

function checkedDigest(digest: string | undefined): string | undefined {
  if (digest === undefined || /^[0-9a-f]{64}$/.test(digest)) return digest
  throw usage('The digest is not one.', { path: '--digest', expected: '64 hexadecimal digits, in lower case' })
}

function objectOf(value: JsonValue): JsonObject {
  if (isJsonObject(value)) return value
  throw usage('--override-args is no JSON object.', { path: '--override-args', expected: 'all arguments of the call by name' })
}

function answerOf(value: JsonValue): Answer {
  const known = isJsonObject(value) && Object.keys(value).every((name) => name === 'answers' || name === 'response')
  if (known) return value as unknown as Answer
  throw usage('--result does not have the form of an answer.', {
    path: '--result',
    expected: 'an object with answers, response, or both',
  })
}
