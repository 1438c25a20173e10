import { isJsonObject, type Payload } from '../../base/index.ts'
import type { BatchItem, LogEvent } from '../../events/index.ts'
import type { RecordedEvent } from '../../log/index.ts'
import { sizeText } from '../format.ts'
import { typeOf } from '../records.ts'
import { noteOf, responseOutcome, settlementText, shortId, usageText, whatOf } from './outcome.ts'

/** Events that belong together: a run, a model request, a call, a wait; `parts` are what happened within a run. */
export interface Group {
  readonly kind: 'run' | 'model' | 'tool' | 'wait' | 'event'
  /** Versions of its own events, rising; not those of its parts. */
  readonly versions: number[]
  /** Epoch milliseconds of the first event and of the last that changed it. */
  readonly time: number
  until: number
  what: string
  outcome: string
  /** True while it goes on: it has taken the time up to now. */
  open: boolean
  note: string
  readonly parts: Group[]
}

/** Groups the events of a thread, runs in the order they were asked for. Pure; also for a thread that breaks off anywhere. */
export function groupEvents(records: readonly RecordedEvent[]): Group[] {
  const grouping = new Grouping()
  for (const record of records) grouping.add(record)
  return grouping.top
}

class Grouping {
  readonly top: Group[] = []
  readonly #runs = new Map<string, Group>()
  readonly #waits = new Map<string, Group>()
  /** By call id, the wait or the call that is not settled. Call ids repeat, so a later one takes the place of an earlier one. */
  readonly #calls = new Map<string, Group>()
  #items: readonly BatchItem[] = []
  #model: Group | undefined
  #run: Group | undefined
  /** Events before the first run. */
  #before: LogEvent[] = []

  add(record: RecordedEvent): void {
    const { event } = record
    if (!event) return void this.#single(record, typeOf(record) ?? 'unreadable', record.defect?.code ?? 'undecodable')
    const { type } = event
    if (type === 'thread.opened/1') this.#before.push(event)
    else if (type.startsWith('run.')) this.#addRun(event)
    else if (type.startsWith('model.') || type === 'request.composed/1') this.#addModel(event)
    else if (type.startsWith('tool.')) this.#addTool(event)
    else if (type.startsWith('continuation.')) this.#addWait(event)
    else this.#single(record, whatOf(event), '', noteOf(event, 'none'))
  }

  #single({ version, event }: RecordedEvent, what: string, outcome: string, note = ''): void {
    const time = event?.time ?? this.top.at(-1)?.until ?? 0
    this.#place({ kind: 'event', versions: [version], time, until: time, what, outcome, open: false, note, parts: [] })
  }

  #place(group: Group): Group {
    const run = group.kind === 'run' ? undefined : this.#run
    if (run) run.parts.push(group)
    else this.top.push(group)
    return group
  }

  #begin(kind: Group['kind'], event: LogEvent, what: string): Group {
    const group: Group = {
      kind,
      versions: [],
      time: event.time,
      until: event.time,
      what,
      outcome: '',
      open: true,
      note: '',
      parts: [],
    }
    if (kind === 'run') for (const { version } of this.#before.splice(0)) group.versions.push(version)
    join(group, event)
    return this.#place(group)
  }

  #addRun(event: LogEvent): void {
    const runId = 'run_id' in event.data ? event.data.run_id : ''
    let run = this.#runs.get(runId)
    if (run) join(run, event)
    else this.#runs.set(runId, (run = this.#begin('run', event, `run ${shortId(runId)}`)))
    switch (event.type) {
      case 'run.requested/1':
        run.outcome = 'requested'
        run.note = `agent ${event.data.agent}`
        return
      case 'run.started/1':
      case 'run.recovered/1':
        run.what = `run ${shortId(runId)} attempt ${event.data.attempt}`
        run.outcome = 'running'
        if (event.type === 'run.started/1') run.note = `agent ${event.data.agent.name}@${event.data.agent.revision}`
        this.#run = run
        this.#model = undefined
        return
      case 'run.suspended/1':
        this.#items = event.data.batch
        this.#end(run, 'suspended', '')
        return
      case 'run.completed/1':
        this.#end(run, 'completed', '')
        return
      case 'run.failed/1':
        this.#end(run, `failed: ${event.data.failure.code}`, event.data.failure.message)
        return
      case 'run.cancelled/1':
        this.#end(run, 'cancelled', event.data.reason)
    }
  }

  #end(run: Group, outcome: string, note: string): void {
    run.outcome = outcome
    run.open = false
    if (note !== '') run.note = [run.note, note].filter((text) => text !== '').join(', ')
  }

  #addModel(event: LogEvent): void {
    if (event.type === 'request.composed/1' || !this.#model) {
      const step = 'step' in event.data ? event.data.step : ''
      this.#model = this.#begin('model', event, `model step ${step}`)
    } else join(this.#model, event)
    const model = this.#model
    if (event.type === 'request.composed/1') model.outcome = event.data.state === 'complete' ? 'asked' : event.data.state
    if (event.type === 'request.composed/1' && event.data.state !== 'complete') model.open = false
    if (event.type === 'model.failed/2') model.outcome = `failed: ${event.data.code}`
    if (event.type !== 'model.responded/1') return
    model.outcome = responseOutcome(event.data.message)
    model.note = usageText(event.data.usage)
    model.open = false
    this.#model = undefined
    for (const [id, name] of callsOf(event.data.message)) this.#calls.set(id, named(name, id))
  }

  #addTool(event: LogEvent): void {
    if (event.type !== 'tool.dispatched/1' && event.type !== 'tool.settled/1') return
    const { call_id } = event.data
    const known = this.#calls.get(call_id)
    const isWait = known?.kind === 'wait'
    if (event.type === 'tool.dispatched/1') {
      // An approved call is its own thing: the wait for the approval has ended.
      const name = event.data.tool.slice(event.data.tool.lastIndexOf('/') + 1)
      const call = known && !isWait && known.versions.length > 0 ? known : this.#begin('tool', event, `tool ${name} ${call_id}`)
      if (call === known) join(call, event)
      call.outcome = 'running'
      this.#calls.set(call_id, call)
      return
    }
    const call = known && known.versions.length > 0 ? known : this.#begin('tool', event, known?.what ?? `tool ${call_id}`)
    if (call === known) join(call, event)
    this.#calls.delete(call_id)
    if (isWait) return
    call.outcome = settlementText(event.data.settlement)
    call.open = false
    call.note = [event.data.reason ?? '', sizeText(event.data.part.size)].filter((text) => text !== '').join(', ')
  }

  #addWait(event: LogEvent): void {
    if (!('continuation_id' in event.data)) return
    const id = event.data.continuation_id
    let wait = this.#waits.get(id)
    if (!wait) {
      const item = this.#items.find((candidate) => candidate.continuation_id === id)
      wait = this.#begin('wait', event, `wait ${shortId(id)} ${item?.tool_name ?? ''}`.trim())
      wait.outcome = 'waiting'
      wait.note = item ? [item.kind, dueText(item)].filter((text) => text !== '').join(', ') : ''
      this.#waits.set(id, wait)
      if (item) this.#calls.set(item.model_call_id, wait)
    } else join(wait, event)
    if (event.type === 'continuation.completed/1') settle(wait, 'completed', event)
    else if (event.type === 'continuation.failed/1') settle(wait, `failed: ${event.data.failure.code}`, event)
    else if (/\.(cancelled|expired|abandoned)\//.test(event.type))
      settle(wait, event.type.slice('continuation.'.length, -2), event)
  }
}

function join(group: Group, event: LogEvent): void {
  group.versions.push(event.version)
  if (group.open) group.until = event.time
}

/** A wait is over when it is answered, not when a run takes the answer up. */
function settle(wait: Group, outcome: string, event: LogEvent): void {
  wait.outcome = outcome
  wait.until = event.time
  wait.open = false
}

/** A call that was asked for and to which nothing has happened yet: not shown until something does. */
const named = (name: string, id: string): Group => ({
  kind: 'tool',
  versions: [],
  time: 0,
  until: 0,
  what: `tool ${name} ${id}`,
  outcome: '',
  open: true,
  note: '',
  parts: [],
})

const dueText = ({ deadline }: BatchItem): string =>
  deadline === null ? '' : `due ${new Date(Math.min(deadline, 8.64e15)).toISOString().replace(/:\d\d\.\d{3}Z$/, 'Z')}`

function callsOf(message: Payload): [id: string, name: string][] {
  const value = message.value
  const parts = isJsonObject(value) && Array.isArray(value['parts']) ? value['parts'] : []
  return parts.flatMap((part): [string, string][] =>
    isJsonObject(part) && part['part_kind'] === 'tool-call' ? [[String(part['tool_call_id']), String(part['tool_name'])]] : [],
  )
}

/** Rising versions as ranges: `1-3, 9`. */
export function rangesText(versions: readonly number[]): string {
  const ranges: [first: number, last: number][] = []
  for (const version of versions) {
    const range = ranges.at(-1)
    if (range && range[1] + 1 === version) range[1] = version
    else ranges.push([version, version])
  }
  return ranges.map(([first, last]) => (first === last ? String(first) : `${first}-${last}`)).join(',')
}
