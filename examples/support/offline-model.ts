// Imported for its effect: unless the environment names a provider, a scripted one answers on this host.
import { hasProvider, modelEnv } from './model.ts'
import { type Script, startModelServer } from './model-server.ts'

const refunds: Script = (conversation) => {
  const [, order = '', euros = '0'] = /order (\w+): (\d+) EUR/i.exec(conversation.asked) ?? []
  const booked = conversation.returned('refund')
  if (!booked) return { calls: [{ name: 'refund', args: { order, cents: Number(euros) * 100 } }] }
  const { cents, iban } = booked.value
  if (!iban) return { text: `I cannot tell whether the refund of order ${order} was booked; a colleague will check.` }
  const paid = conversation.returned('payout')
  if (!paid) return { calls: [{ name: 'payout', args: { iban, cents } }] }
  return { text: `Order ${order} is refunded, payment reference ${paid.value['reference']}.` }
}

if (!hasProvider()) Object.assign(process.env, modelEnv((await startModelServer(refunds)).url))
