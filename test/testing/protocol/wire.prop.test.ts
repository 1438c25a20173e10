import { afterAll, describe, expect, test } from 'vitest'
import { formatReport, mergeReports, type ProtocolReport, runProtocolModel } from '../../../src/testing/index.ts'

describe('the commit protocol with encoded events, decoded and hashed by each node for itself', () => {
  const reports: ProtocolReport[] = []
  test.each([500_001, 500_501, 501_001, 501_501])('holds from seed %i', (seed) => {
    reports.push(runProtocolModel({ seed, schedules: 500, records: 'encoded' }))
  })

  test('in other sizes too', () => {
    reports.push(runProtocolModel({ seed: 1, schedules: 60, records: 'encoded', writers: 6, readers: 4, streams: 4, steps: 200 }))
    reports.push(runProtocolModel({ seed: 1, schedules: 60, records: 'encoded', writers: 1, readers: 1, streams: 1, faults: 20 }))
  })

  test('light records lead to the same runs', () => {
    const light = runProtocolModel({ seed: 500_001, schedules: 500 })
    expect(light).toEqual(reports[0])
  })

  afterAll(() => console.log(formatReport(mergeReports(reports))))
})
