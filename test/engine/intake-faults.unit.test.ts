import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fatal, retryLater, systemClock } from '../../src/base/index.ts'
import type { Receipt } from '../../src/continuations/index.ts'
import { openSqliteLog, type Topics } from '../../src/log/index.ts'
import { ThreadStore } from '../../src/projections/index.ts'
import { IntakeRig, payout, withTopics } from './intake-rig.ts'

const offsets = (receipts: Receipt[]) => receipts.map(({ source }) => ('offset' in source ? source.offset : -1))
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)

describe('one process', () => {
  let rig: IntakeRig
  beforeEach(async () => {
    rig = await IntakeRig.open()
  })
  afterEach(() => rig.close())

  test('a crash between the append and the receipt gives the equal verdict afterwards', async () => {
    const t = await rig.thread()
    await rig.send(payout(t, 1))
    const dying = withTopics(rig.backend, {
      transact: async () => {
        throw fatal('killed', 'The process is gone.')
      },
    })
    const intake = rig.start({ backend: dying })
    await expect(intake.done).rejects.toMatchObject({ code: 'killed' })
    const { version } = await rig.store.load(t.stream)
    expect((await rig.store.load(t.stream)).waits.get(t.waits[0]?.id ?? '')?.status).toBe('completed')
    rig.start()
    expect((await rig.until(1))[0]?.verdict).toBe('accepted')
    expect((await rig.store.load(t.stream)).version).toBe(version)
  })

  test('a busy log: the receipts are published in the end, once', async () => {
    const threads = await Promise.all(upTo(5).map(() => rig.thread()))
    let failures = 0
    const transact: Topics['transact'] = async (o) => {
      if (++failures <= 3) throw retryLater('log_busy', 'busy')
      await rig.backend.topics.transact(o)
    }
    await rig.send(...threads.map((t) => payout(t, 1)))
    rig.start({ backend: withTopics(rig.backend, { transact }) })
    expect(offsets(await rig.until(5))).toEqual(upTo(5))
    expect(rig.errors).toHaveLength(3)
  })

  test('a transaction that succeeded and was reported as failed is not repeated', async () => {
    let reported = 0
    const transact: Topics['transact'] = async (o) => {
      await rig.backend.topics.transact(o)
      if (++reported === 1) throw retryLater('log_io_failed', 'The answer got lost.')
    }
    await rig.send(payout(await rig.thread(), 1))
    rig.start({ backend: withTopics(rig.backend, { transact }) })
    await rig.until(1)
    await rig.send(payout(await rig.thread(), 1), 'x')
    expect(offsets(await rig.until(3))).toEqual(upTo(3))
  })

  test('a subscription that breaks off is taken up again', async () => {
    let tries = 0
    const subscribe: Topics['subscribe'] = (topic, o) => {
      if (++tries < 3) throw retryLater('log_busy', 'busy')
      return rig.backend.topics.subscribe(topic, o)
    }
    await rig.send('x')
    rig.start({ backend: withTopics(rig.backend, { subscribe }) })
    expect(await rig.until(1)).toHaveLength(1)
  })

  test('a log that fails for good stops the intake and says so', async () => {
    await rig.send(payout(await rig.thread(), 1))
    const store = Object.create(rig.store, {
      fold: {
        value: async () => {
          throw fatal('log_damaged', 'damaged')
        },
      },
      clock: { value: systemClock },
      backend: { value: rig.backend },
    }) as ThreadStore
    const intake = rig.start({ store })
    await expect(intake.done).rejects.toMatchObject({ code: 'log_damaged' })
    expect(rig.errors).toContainEqual(expect.objectContaining({ code: 'log_damaged' }))
  })

  test('a record that meets a defect is refused after some tries and holds up nobody', async () => {
    const [a, b] = [await rig.thread(), await rig.thread()]
    const clock = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 5), signal) }
    const store = Object.create(rig.store, {
      clock: { value: clock },
      backend: { value: rig.backend },
      commit: { value: rig.store.commit.bind(rig.store) },
      fold: {
        value: async (stream: string) => {
          if (stream === a.stream) throw new TypeError('a defect')
          return rig.store.fold(stream)
        },
      },
    }) as ThreadStore
    await rig.send(payout(a, 1), payout(b, 1))
    rig.start({ store })
    const receipts = await rig.until(2)
    expect(receipts.map(({ verdict, code }) => [verdict, code])).toEqual([
      ['invalid', 'not_processable'],
      ['accepted', undefined],
    ])
  })
})

describe('two members', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadlog-intake-'))
  })
  afterEach(() => rm(folder, { recursive: true }))

  test('a thousand results, a thousand receipts', async () => {
    const file = join(folder, 'log.db')
    const rig = await IntakeRig.open(await openSqliteLog({ file }))
    const backend = await openSqliteLog({ file })
    const store = await ThreadStore.open({ backend, clock: systemClock, ids: rig.store.ids })
    const threads = await Promise.all(upTo(50).map(() => rig.thread()))
    rig.start()
    const second = rig.start({ backend, store })
    for (let sent = 0; sent < 1000; sent += 100) {
      await rig.send(...upTo(100).map((i) => payout(threads[(sent + i) % 50]!, i % 4)))
      await systemClock.sleep(10)
    }
    const receipts = await rig.until(1000)
    expect(offsets(receipts)).toEqual(upTo(1000))
    expect(receipts.filter(({ verdict }) => verdict === 'accepted')).toHaveLength(50)
    await second.close()
    await backend.close()
    await rig.close()
  })

  test('the one that stands by takes over', async () => {
    const rig = await IntakeRig.open()
    const first = rig.start()
    const second = rig.start()
    for (let sent = 0; sent < 5; sent++) {
      await rig.send(`${sent}`)
      await rig.until(sent + 1)
    }
    await first.close()
    await rig.send('x', 'y')
    expect(offsets(await rig.until(7))).toEqual(upTo(7))
    await second.close()
    await rig.close()
  })
})
