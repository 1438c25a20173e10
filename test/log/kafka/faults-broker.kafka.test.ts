import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { EventLog } from '../../../src/log/index.ts'
import { after, assertUnbroken, commitOn, newStream, readStream } from '../../../src/testing/log-conformance/writing.ts'
import { describeKafka, describeOwnKafka, kafkaPlace, ownBroker } from '../../support/kafka/index.ts'
import { codeOf, configure, streamIn, until } from './faults-support.ts'

describeKafka('a broker that is not there', () => {
  test('is told as log_unavailable, and the process that asked can end', async () => {
    const kafka = fileURLToPath(new URL('../../../src/log/kafka/index.ts', import.meta.url))
    const program = `
      const { openKafkaLog } = await import(${JSON.stringify(kafka)})
      try { await openKafkaLog({ brokers: ['127.0.0.1:1'], prefix: 'away' }) }
      catch (error) { console.log(error.code, error.disposition) }`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    child.stdout.on('data', (chunk) => (said += chunk))
    const [code] = await once(child, 'close')
    expect([code, said.trim()]).toEqual([0, 'log_unavailable retry'])
  })
})

/** Writers that append one commit after the other, each to a stream of its own, until they are told to stop. */
function writers(log: EventLog, count: number) {
  let stopped = false
  const accepted = new Map<string, number>()
  let total = 0
  const write = async () => {
    const stream = newStream()
    let head: ReturnType<typeof after> | undefined
    for (let n = 1; !stopped; n++) {
      const commit = commitOn(stream, head, 1 + (n % 3))
      const fate = await log.append(commit)
      expect(fate).toMatchObject({ accepted: true })
      head = after(commit)
      accepted.set(stream, head.version)
      total++
    }
  }
  const done = Promise.all(Array.from({ length: count }, write))
  return {
    accepted,
    reached: (n: number) => until(`${n} commits`, () => total >= n),
    get total() {
      return total
    },
    stop: async () => {
      stopped = true
      await done
    },
  }
}

/** What was answered as accepted is there for a replica that is built anew, once and in order. */
async function holds(log: EventLog, accepted: ReadonlyMap<string, number>): Promise<void> {
  for (const [stream, version] of accepted) {
    const read = await readStream(log, stream)
    assertUnbroken(read)
    expect(read).toHaveLength(version)
  }
}

describeOwnKafka('a broker that fails', () => {
  test('row 124: killed in the middle of appends: what was accepted is there, what was under way comes to its fate', async () => {
    await using broker = await ownBroker()
    await using place = await kafkaPlace({ brokers: broker.brokers })
    const { events: log } = await place.open()
    const running = writers(log, 12)
    for (let kills = 1; kills <= 3; kills++) {
      await running.reached(running.total + 40)
      await broker.restart()
    }
    await running.reached(running.total + 20)
    await running.stop()
    await holds((await place.open()).events, running.accepted)
  }, 120_000)

  test('frozen for longer than a request may take: the commit is sent again and counts once', async () => {
    await using broker = await ownBroker()
    await using place = await kafkaPlace({ brokers: broker.brokers })
    const troubles: unknown[] = []
    const { events: log } = await place.open({ onTrouble: (trouble) => troubles.push(trouble) })
    const running = writers(log, 4)
    await running.reached(8)
    broker.freeze()
    const before = running.total
    await new Promise((resolve) => setTimeout(resolve, 11_500))
    expect(running.total).toBeLessThanOrEqual(before + 4)
    broker.thaw()
    await running.reached(before + 12)
    await running.stop()
    expect(troubles).toContainEqual(expect.objectContaining({ code: 'log_unavailable' }))
    await holds((await place.open()).events, running.accepted)
  }, 120_000)
})

describeKafka('a commit that is too large', () => {
  test('for every log is refused with the limit, and nothing is sent', async () => {
    await using place = await kafkaPlace()
    const { events: log } = await place.open()
    const before = await log.barrier()
    const refused = expect.objectContaining({
      code: 'commit_too_large',
      disposition: 'reject',
      expected: expect.stringContaining('900000'),
    })
    expect(() => commitOn(newStream(), undefined, 1, 'x'.repeat(950_000))).toThrow(refused)
    // Made by hand, past the encoder.
    const commit = commitOn(newStream(), undefined)
    const large = { ...commit, records: commit.records.map((record) => ({ ...record, bytes: new Uint8Array(950_000) })) }
    await expect(log.append(large)).rejects.toEqual(refused)
    expect(await log.barrier()).toEqual(before)
  })

  test('row 87, row 127: for the broker only: it alone is refused, the others of its round are accepted', async () => {
    await using place = await kafkaPlace({ partitions: 2 })
    const { events: log } = await place.open()
    await configure(place.connection, `${place.prefix}.events`, { 'max.message.bytes': '20000' })
    const commits = ['small', 'x'.repeat(30_000), 'small'].flatMap((reason) =>
      [0, 1].map((partition) => commitOn(streamIn(log, partition), undefined, 2, reason)),
    )
    const fates = await Promise.all(commits.map((commit) => codeOf(log.append(commit))))
    const accepted = { resolved: expect.objectContaining({ accepted: true }) }
    expect(fates).toEqual([accepted, accepted, 'commit_too_large', 'commit_too_large', accepted, accepted])
    expect(await log.append(commitOn(newStream(), undefined))).toMatchObject({ accepted: true })
  })
})
