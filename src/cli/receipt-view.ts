import type { JsonObject, JsonValue } from '../base/index.ts'
import type { Receipt } from '../continuations/index.ts'
import type { Context } from './context.ts'
import { EXIT } from './errors.ts'
import { outcomeStyle } from './table.ts'
import { visible } from './visible.ts'

/** Shows the receipt of a result; the exit code says whether the result counts. */
export async function showReceipt(context: Context, receipt: Receipt): Promise<number> {
  await context.result({ receipt: receipt as unknown as JsonValue } as JsonObject, () => receiptLines(context, receipt))
  return receipt.verdict === 'accepted' || receipt.verdict === 'duplicate' ? EXIT.done : EXIT.otherAnswer
}

function receiptLines({ io }: Context, receipt: Receipt): string[] {
  const { verdict, final, code, path, expected, continuation_id, external_id, result_id } = receipt
  const facts: [string, string | undefined][] = [
    ['wait', continuation_id],
    ['external id', external_id],
    ['result', result_id],
    ['source', sourceText(receipt.source)],
    ['code', code],
    ['path', path],
    ['expected', expected],
    ['final', final ? undefined : 'no'],
  ]
  const style = outcomeStyle(verdict)
  return [
    `${'verdict'.padEnd(12)}${style ? io.paint(style, verdict) : verdict}`,
    ...facts.flatMap(([name, value]) => (value === undefined ? [] : `${name.padEnd(12)}${visible(value)}`)),
  ]
}

/** Where a result came from: `results/0@12`, or the call of an API. */
export const sourceText = (source: Receipt['source']): string =>
  'topic' in source ? `${source.topic}/${source.partition}@${source.offset}` : `${source.api} ${source.command_id}`
