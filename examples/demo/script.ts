import type { Script } from '../support/model-server.ts'

/** Plays the support agent's model. */
export const supportScript: Script = (conversation) => {
  const order = /order (\w+)/i.exec(conversation.asked)?.[1] ?? ''
  const found = conversation.returned('lookup_order')
  if (!found) return { calls: [{ name: 'lookup_order', args: { order } }] }
  const { cents, iban } = found.value
  const booked = conversation.returned('refund')
  if (!booked) return { calls: [{ name: 'refund', args: { order, cents } }] }
  if (!booked.value['booked'])
    return { text: `I cannot tell whether the refund of order ${order} was booked; a colleague will check.` }
  const paid = conversation.returned('payout')
  if (!paid) return { calls: [{ name: 'payout', args: { iban, cents } }] }
  return { text: `Your refund of ${Number(cents) / 100} EUR is on its way, payment reference ${paid.value['reference']}.` }
}
