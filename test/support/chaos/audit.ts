import { decodeReceipt, type Receipt } from '../../../src/continuations/index.ts'
import type { LogEvent } from '../../../src/events/index.ts'
import type { LogBackend } from '../../../src/log/index.ts'
import { findWait, foldStream, type ThreadState, threadStatus, type Wait } from '../../../src/projections/index.ts'
import { checkStream } from '../processes/checks.ts'
import { effects } from '../processes/ledger.ts'
import { eventsOf, recordsOf, streamsOf } from '../processes/streams.ts'
import { outputOf, RETRYABLE } from './agent.ts'
import { type Call, callsOf, checkEffects } from './effects.ts'
import { isWanted } from './jobs.ts'
import { checkJobs } from './jobs-audit.ts'
import { type Turn, threadName } from './orders.ts'
import type { Aftermath } from './storm.ts'
import { checkVerdicts, type Row } from './verdicts.ts'
import type { Request } from './watcher.ts'

/** What a storm came to. Without violations nothing was lost, doubled or answered wrongly. */
export interface Audit {
  violations: string[]
  counts: Record<string, number | Record<string, number>>
}

/** Holds everything that is left against what the producers, the tools and the callers know. */
export async function audit(a: Aftermath): Promise<Audit> {
  const violations = [...a.violations]
  const violate = (what: string) => void violations.push(what)
  const { backend, store } = a.threads
  const waits = new Map<string, Wait>()
  const events: LogEvent[] = []
  const calls: Call[] = []
  const states = new Map<string, ThreadState>()
  const reserved = new Map<string, ThreadState>()
  for (const stream of streamsOf(backend)) {
    const ofThread = await eventsOf(backend, stream)
    events.push(...ofThread)
    if (ofThread[0]?.type.startsWith('reservation.')) {
      reserved.set(stream, foldStream(await recordsOf(backend, stream)).state)
      continue
    }
    calls.push(...callsOf(ofThread))
    checkAttempts(stream, ofThread, violate)
    try {
      const state = await checkStream(store, stream)
      states.set(state.identity?.thread ?? '', state)
      for (const id of [...state.waits.keys(), ...[...state.closedWaits].map(([id]) => id)])
        waits.set(id, findWait(state, id) as Wait)
    } catch (error) {
      violate(`thread ${stream}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  checkTurns(a.turns, states, violate)
  await checkRequests(backend, waits, violate)
  const rows = await resultRows(backend)
  const receipts = await receiptsOf(backend)
  const jobs = checkJobs(reserved, waits, violate)
  const sent = a.sent.map((each) => ({ ...each, wait: jobs.waitOf.get(each.wait ?? '') ?? each.wait }))
  const verdicts = checkVerdicts({ rows, receipts, sent, waits, events, once: a.once }, violate)
  const settled = checkEffects(
    effects(a.ground.ledger),
    calls,
    RETRYABLE,
    violate,
    (done) => done !== undefined && isWanted(done, a.dense),
  )
  if (a.watcher.seen.events !== events.length)
    violate(`a follower saw ${a.watcher.seen.events} events, the log has ${events.length}`)
  await a.ground.verify(violate)
  return {
    violations,
    counts: {
      orders: a.turns.length,
      events: events.length,
      ended: tally([...states.values()].flatMap((state) => [...state.invocations].map(([, end]) => end.status))),
      waits: tally(
        [...waits.values()].map((wait) => (wait.outcome && wait.status === 'abandoned' ? 'answered, abandoned' : wait.status)),
      ),
      results: rows.length,
      cards: a.dealt as Record<string, number>,
      ways: tally(a.sent.map(({ way }) => way)),
      verdicts,
      jobs: jobs.counts,
      calls: settled,
      recoveries: recoveries(events, a),
      ...a.fleet.counts,
      problems: a.problems,
    },
  }
}

type Violate = (what: string) => void

function tally(items: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const item of items) counts[item] = (counts[item] ?? 0) + 1
  return counts
}

/** What a run's attempt writes it writes while it is the current one, and by the hand of the owner that took it. */
function checkAttempts(stream: string, events: readonly LogEvent[], violate: Violate): void {
  const current = new Map<string | null, { attempt: number; owner: string }>()
  for (const { type, data, run_id: run, attempt, actor, version } of events) {
    if (type === 'run.started/1' || type === 'run.recovered/1')
      current.set(data.run_id, { attempt: data.attempt, owner: data.owner.id })
    if (attempt === null) continue
    const now = current.get(run)
    const cut = actor.source === 'cancel'
    if (now && (now.attempt !== attempt || (!cut && now.owner !== actor.id)))
      violate(`thread ${stream} version ${version}: ${type} by attempt ${attempt} of ${actor.id} during attempt ${now.attempt}`)
  }
}

/** Every order that was acknowledged has one end, which is `completed` unless somebody meant otherwise. */
function checkTurns(turns: readonly Turn[], states: ReadonlyMap<string, ThreadState>, violate: Violate): void {
  for (const { order, thread, runId, disturbed } of turns) {
    const state = states.get(threadName(thread))
    const end = state?.invocations.get(runId ?? '')
    if (runId === undefined || !state || state.commands.get(order) !== runId) violate(`${order}: acknowledged and not in the log`)
    else if (!end) violate(`${order}: no end`)
    else if (end.status === 'completed') {
      if (end.output?.value !== outputOf(order)) violate(`${order}: another order's output`)
    } else if (end.status !== 'cancelled' || !disturbed) violate(`${order}: ${end.status} ${end.failure?.code ?? end.reason}`)
  }
  for (const [name, state] of states) {
    if (threadStatus(state) !== 'idle' || state.requested.length > 0 || state.waits.size > 0)
      violate(`${name}: ${threadStatus(state)}, ${state.requested.length} queued, ${state.waits.size} waits open`)
    const asked = turns.filter(({ thread }) => threadName(thread) === name).length
    const invocations = [...state.invocations].length
    if (invocations !== asked) violate(`${name}: ${asked} orders, ${invocations} invocations`)
  }
}

/** Each wait was asked for once, and taken back once if it ended without being claimed. */
async function checkRequests(backend: LogBackend, waits: ReadonlyMap<string, Wait>, violate: Violate): Promise<void> {
  const asked = new Map<string, number>()
  const takenBack = new Map<string, number>()
  for await (const batch of backend.topics.scan('requests'))
    for (const { value } of batch) {
      const { continuation_id: id, cancelled } = JSON.parse(Buffer.from(value).toString()) as Request
      const counts = cancelled ? takenBack : asked
      counts.set(id, (counts.get(id) ?? 0) + 1)
    }
  for (const [id, { status }] of waits) {
    if (asked.get(id) !== 1) violate(`wait ${id}: asked for ${asked.get(id) ?? 0} times`)
    const back = takenBack.get(id) ?? 0
    if (back !== (status === 'claimed' ? 0 : 1)) violate(`wait ${id}: ${status}, taken back ${back} times`)
  }
  for (const id of asked.keys()) if (!waits.has(id)) violate(`a request without a wait: ${id}`)
}

async function resultRows(backend: LogBackend): Promise<Row[]> {
  const rows: Row[] = []
  for await (const batch of backend.topics.scan('results'))
    for (const { key, position } of batch) rows.push({ key, partition: position.partition, offset: Number(position.offset) })
  return rows
}

async function receiptsOf(backend: LogBackend): Promise<Receipt[]> {
  const receipts: Receipt[] = []
  for await (const batch of backend.topics.scan('receipts')) for (const { value } of batch) receipts.push(decodeReceipt(value))
  return receipts
}

/** Who was taken over, and from whom: a process that was gone, one that was frozen, itself after a fault, or one that was well. */
function recoveries(events: readonly LogEvent[], { fleet }: Aftermath): Record<string, number> {
  const owners = new Map<string, string>()
  const kinds: string[] = []
  for (const event of events) {
    if (event.type !== 'run.started/1' && event.type !== 'run.recovered/1') continue
    const { run_id: run, owner } = event.data
    if (event.type === 'run.recovered/1') kinds.push(kindOf(owners.get(run) ?? '', owner.id, event.time))
    owners.set(run, owner.id)
  }
  return tally(kinds)

  function kindOf(from: string, to: string, time: number): string {
    const life = fleet.lives.get(from)
    if (from === to) return 'own'
    if (life?.killed !== undefined && life.killed <= time) return 'killed'
    return life?.frozen.some(([begin, end]) => begin <= time && time <= end + 10_000) ? 'frozen' : 'alive'
  }
}
