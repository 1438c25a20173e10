// The payout process on Kafka: takes requests from their topic and answers each one three times. Any Kafka client will do; this is kafkajs.
//   node payouts-kafka.ts <brokers> <prefix>
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs from 'kafkajs'

const [brokers = '', prefix = ''] = process.argv.slice(2)
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
const BANK_MS = 400

const kafka = new kafkajs.Kafka({ clientId: 'payouts', brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING })
const producer = kafka.producer()
await producer.connect()

async function answer(
  request: { external_id: string; application_id: string },
  result_id: string,
  reference: string,
): Promise<void> {
  const { external_id, application_id } = request
  const value = JSON.stringify({ provider: 'payouts', application_id, external_id, result_id, result: { reference } })
  await producer.send({ topic: `${prefix}.results`, messages: [{ key: external_id, value }] })
}

const answered = new Set<string>()
async function onRequest(value: string): Promise<void> {
  const request = JSON.parse(value)
  // A request that was taken back is sent once more, with cancelled: true.
  if (request.provider !== 'payouts' || request.cancelled || answered.has(request.external_id)) return
  answered.add(request.external_id)
  say({ event: 'request', arguments: request.arguments })
  await sleep(BANK_MS)
  await answer(request, 'bank-1', 'PO-7301') // the answer
  await answer(request, 'bank-1-again', 'PO-7301') // the same, under another id
  await answer(request, 'bank-2', 'PO-9999') // another one
  say({ event: 'answered', results: 3 })
}

function onReceipt(value: string): void {
  const { provider, final, result_id, verdict } = JSON.parse(value)
  if (provider === 'payouts' && final) say({ event: 'receipt', result_id, verdict })
}

const consumer = kafka.consumer({ groupId: `${prefix}-payouts`, maxWaitTimeInMs: 200 })
await consumer.connect()
await consumer.subscribe({ topics: [`${prefix}.requests`, `${prefix}.receipts`], fromBeginning: true })
await consumer.run({
  eachMessage: async ({ topic, message }) => {
    const value = String(message.value)
    if (topic.endsWith('.requests')) await onRequest(value)
    else onReceipt(value)
  },
})
say({ event: 'ready', language: `Node ${process.versions.node.split('.')[0]}, kafkajs` })
process.stdin.resume().on('end', () => process.exit())
