import { createRequire } from 'node:module'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { crc32c, encodeProduce, type ProduceArguments } from '../../../src/log/kafka/batch.ts'

const require = createRequire(import.meta.url)
/** The library's own encoder, and its own check of a batch. */
const theirs = require('kafkajs/src/protocol/requests/produce/v3/request') as (args: object) => {
  encode(): Promise<{ buffer: Buffer }>
}
const theirCrc = require('kafkajs/src/protocol/recordBatch/crc32C') as (bytes: Buffer) => number

const bytes = fc.uint8Array({ maxLength: 300 }).map((each) => Buffer.from(each))
const message = fc.record(
  {
    key: fc.oneof(bytes, fc.string(), fc.constant(null)),
    value: fc.oneof(bytes, fc.string({ minLength: 1 }), fc.constant(null)),
    headers: fc.dictionary(fc.string({ minLength: 1 }), fc.oneof(bytes, fc.string(), fc.array(fc.string(), { minLength: 1 }))),
  },
  { requiredKeys: ['value'] },
)
const partition = fc.record({
  partition: fc.nat(5),
  firstSequence: fc.nat(100_000),
  messages: fc.array(message, { minLength: 1, maxLength: 140 }),
})
const request = fc.record({
  acks: fc.constant(-1),
  timeout: fc.nat(60_000),
  transactionalId: fc.option(fc.string({ minLength: 1 })),
  producerId: fc.nat(),
  producerEpoch: fc.nat(30_000),
  topicData: fc.array(
    fc.record({ topic: fc.string({ minLength: 1 }), partitions: fc.array(partition, { minLength: 1, maxLength: 3 }) }),
    {
      maxLength: 3,
    },
  ),
})

test('a produce request is what kafkajs would make of it', async () => {
  await fc.assert(
    fc.asyncProperty(request, async (args) => {
      const clock = Date.now
      Date.now = () => 1_796_000_000_000
      try {
        const wanted = (await theirs({ ...args, compression: 0 }).encode()).buffer
        const given = encodeProduce(args as ProduceArguments)
        expect(given.equals(wanted)).toBe(true)
      } finally {
        Date.now = clock
      }
    }),
    { numRuns: 60 },
  )
})

test('the checksum is the one of CRC-32C', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  fc.assert(fc.property(bytes, (each) => crc32c(each) === theirCrc(each) >>> 0))
})
