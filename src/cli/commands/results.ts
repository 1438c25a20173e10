import { type Command, Option } from 'commander'
import type { JsonObject } from '../../base/index.ts'
import { decodeReceipt, type Receipt } from '../../continuations/index.ts'
import type { Delivery, LogBackend, Positions } from '../../log/index.ts'
import type { Context } from '../context.ts'
import { after } from '../deadline.ts'
import { EXIT, timedOut, usage } from '../errors.ts'
import { endOfTopic, followTopic } from '../follow.ts'
import { durationText, parseDuration } from '../format.ts'
import { jsonArgument } from '../inputs.ts'
import { writing } from '../logs.ts'
import { action, parsed, type Session } from '../options.ts'
import { showReceipt } from '../receipt-view.ts'
import { positionJson } from '../records.ts'

interface Options {
  provider: string
  externalId?: string
  continuationId?: string
  result?: string
  failure?: string
  retryable?: boolean
  resultId?: string
  schemaId?: string
  digest?: string
  app?: string
  timeout: number
  wait: boolean
}

type Coordinate = Delivery['position']

/** `threadlog results send` */
export function resultsCommand(program: Command, session: Session): void {
  const group = program
    .command('results')
    .summary('send a result as a provider does')
    .description('Results of calls answered from outside.')
  const command = group
    .command('send')
    .summary('publish a result and wait for its receipt')
    .description(
      'Publishes a result to the results topic, as a provider does, and waits for the receipt that an engine on this log writes for it.',
    )
    .requiredOption('--provider <name>', 'who answers')
    .option('--external-id <id>', "the provider's own id of the job")
    .option('--continuation-id <id>', 'id of the wait')
    .option('--result <json>', 'the result: JSON, @file, or - for standard input')
    .option('--failure <code>', 'instead of a result: the call failed with this code')
    .option('--retryable', 'the failure may pass')
    .option('--result-id <id>', 'names the result, so that sending it again counts once')
    .option('--schema-id <id>', 'schema the result was made for; another one than the wait has is refused')
    .option('--digest <digest>', 'digest of the proposal the result was made for')
    .option('--app <application>', "application of the wait (default: the engine's)")
    .addOption(
      new Option('--timeout <duration>', 'how long to wait for the receipt')
        .argParser(parsed(parseDuration))
        .default(30_000, '30s'),
    )
    .option('--no-wait', 'do not wait for the receipt; shows where the result stands')
    .addHelpText(
      'after',
      '\nExit code 0 when the verdict is accepted or duplicate, 1 for any other, 3 when no receipt came in time.',
    )
  action<Options, []>(command, session, async (context, o) => {
    const value = new TextEncoder().encode(JSON.stringify(await submissionOf(o)))
    return writing(context.log, async (backend) => {
      const from = await endOfTopic(backend, 'receipts')
      const key = o.continuationId ?? o.externalId ?? ''
      const behind = await backend.topics.publish('results', [{ key, value }])
      const position = lastOf(behind)
      if (!o.wait) return sent(context, position)
      const receipt = await receiptOf(context, backend, position, from, o.timeout)
      return receipt ? showReceipt(context, receipt) : EXIT.done
    })
  })
}

async function submissionOf(o: Options): Promise<JsonObject> {
  if ((o.externalId === undefined) === (o.continuationId === undefined))
    throw usage('Give either --external-id or --continuation-id.')
  if ((o.result === undefined) === (o.failure === undefined)) throw usage('Give either --result or --failure.')
  if (o.retryable && o.failure === undefined) throw usage('--retryable goes with --failure.')
  const given = {
    application_id: o.app,
    provider: o.provider,
    external_id: o.externalId,
    continuation_id: o.continuationId,
    result_id: o.resultId,
    schema_id: o.schemaId,
    proposal_digest: o.digest,
  }
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as JsonObject
  if (o.result !== undefined) return { ...fields, result: await jsonArgument(o.result, '--result') }
  return { ...fields, failure: { code: o.failure as string, retryable: o.retryable ?? false } }
}

/** One record was published, so one partition moved: its record stands directly before the position behind it. */
function lastOf(behind: Positions): Coordinate {
  const [[partition, next]] = [...behind] as [[number, bigint]]
  return { partition, offset: next - 1n }
}

async function sent(context: Context, position: Coordinate): Promise<number> {
  await context.result({ sent: { topic: 'results', ...positionJson(position) } }, () => [
    `sent results/${position.partition}@${position.offset}`,
  ])
  return EXIT.done
}

/** The receipt of a record; undefined when interrupted. @throws ThreadlogError `timeout` */
async function receiptOf(
  { io, signal: stop }: Context,
  backend: LogBackend,
  { partition, offset }: Coordinate,
  from: Positions,
  timeout: number,
): Promise<Receipt | undefined> {
  const late = after(timeout)
  const signal = AbortSignal.any([stop, late])
  for await (const { value } of followTopic(backend, 'receipts', from, { io, signal })) {
    const receipt = readReceipt(value)
    if (!receipt || !('topic' in receipt.source)) continue
    const { source } = receipt
    // On Kafka the name has the prefix of the log in front.
    if (!/(^|\.)results$/.test(source.topic)) continue
    if (source.partition === partition && BigInt(source.offset) === offset) return receipt
  }
  if (stop.aborted) return undefined
  throw timedOut(`No receipt came within ${durationText(timeout)}; the result stands at results/${partition}@${offset}.`, {
    hint: 'An engine must be running on this log to judge results: threadlog engine <module>. The receipt will be in threadlog receipts.',
    details: { topic: 'results', partition, offset: String(offset), timeout_ms: timeout },
  })
}

function readReceipt(value: Uint8Array): Receipt | undefined {
  try {
    return decodeReceipt(value)
  } catch {
    // The topic may hold receipts of a newer release.
    return undefined
  }
}
