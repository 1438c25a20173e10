import { describe, expect, test } from 'vitest'
import { apiSource, externalIdKey, makeReceipt, receiptRecord, topicSource } from '../../src/continuations/index.ts'

const from = (offset: bigint, time = 5) => topicSource({ cluster: 'c1', topic: 'results', partition: 2, offset, time })
const headersOf = (source: ReturnType<typeof from>, now = 9) =>
  receiptRecord('k', makeReceipt(source, { provider: 'bank', address: { external_id: 'job ü' } }, { verdict: 'accepted' }), now)
    .headers

describe('headers of a receipt', () => {
  test('name the record it answers', () => {
    expect(headersOf(from(7n))).toEqual({
      specversion: '1.0',
      id: 'results/2/7/5/1',
      source: '/threadlog/log/c1',
      type: 'threadlog.receipt/1',
      subject: externalIdKey('bank', 'job ü'),
      time: '1970-01-01T00:00:00.005Z',
      datacontenttype: 'application/json',
    })
  })

  test('are equal when the receipt is made again later, and of another record are others', () => {
    expect(headersOf(from(7n), 1_000)).toEqual(headersOf(from(7n)))
    expect(headersOf(from(8n))?.['id']).not.toBe(headersOf(from(7n))?.['id'])
    // A topic made anew counts its offsets again.
    expect(headersOf(from(7n, 6))?.['id']).not.toBe(headersOf(from(7n))?.['id'])
  })

  test('of a call name the call', () => {
    expect(headersOf(apiSource('approve', 'order 1'))).toMatchObject({
      id: 'order 1/1',
      source: '/threadlog/api/approve',
      time: '1970-01-01T00:00:00.009Z',
    })
  })

  test('without an address have no subject', () => {
    const receipt = makeReceipt(from(1n), {}, { verdict: 'unreadable' })
    expect(receiptRecord('', receipt, 0).headers).not.toHaveProperty('subject')
  })
})
