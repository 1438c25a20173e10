import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cloudEvent } from '../../../src/events/index.ts'
import { fromKafkaHeaders, toKafkaHeaders } from '../../../src/log/kafka/headers.ts'

describe('headers on Kafka', () => {
  test('attributes of a CloudEvent have the names of its Kafka binding', () => {
    const event = { id: 'a/1', source: '/threadlog/shop', type: 'threadlog.receipt/1', subject: 'ü', time: 0 }
    expect(toKafkaHeaders(cloudEvent(event))).toEqual({
      ce_specversion: '1.0',
      ce_id: 'a/1',
      ce_source: '/threadlog/shop',
      ce_type: 'threadlog.receipt/1',
      ce_subject: 'ü',
      ce_time: '1970-01-01T00:00:00.000Z',
      'content-type': 'application/json',
    })
  })

  test('a header without an attribute name keeps its own, and an attribute wins over a header of its name', () => {
    expect(toKafkaHeaders({ specversion: '1.0', 'trace-parent': 't' })).toEqual({ ce_specversion: '1.0', 'trace-parent': 't' })
    const both = { ce_specversion: '1.0', ce_id: 'attribute', id: 'header' }
    expect(fromKafkaHeaders(both)).toEqual({ specversion: '1.0', id: 'attribute' })
  })

  test('every CloudEvent comes back as it was, and other headers are not touched', () => {
    const names = fc.stringMatching(/^[a-z0-9]{1,20}$/).filter((name) => name !== 'specversion')
    fc.assert(
      fc.property(fc.dictionary(names, fc.string()), (attributes) => {
        const headers = { ...attributes, specversion: '1.0' }
        expect(fromKafkaHeaders(toKafkaHeaders(headers))).toEqual(headers)
        expect(toKafkaHeaders(attributes)).toEqual(attributes)
        expect(fromKafkaHeaders(attributes)).toEqual(attributes)
      }),
    )
  })
})
