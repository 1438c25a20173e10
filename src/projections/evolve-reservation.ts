import type { EventType, LogEvent } from '../events/index.ts'
import type { ThreadState } from './state.ts'
import { known, unfoldable } from './unfoldable.ts'

type Of<T extends EventType> = LogEvent<T>

/** What is reserved, for whom; and, in the holder's thread, what was taken back (design §6). */
export function evolveReservation(state: ThreadState, event: LogEvent): ThreadState {
  switch (event.type) {
    case 'reservation.taken/1':
      return taken(state, event)
    case 'reservation.released/1':
      return released(state, event)
    case 'reservation.held/1':
      return held(state, event)
    case 'reservation.settled/1':
      return settled(state, event)
    case 'reservation.withdrawn/1':
      return withdrawn(state, event)
    default:
      throw unfoldable(event, 'this version has no rule for it.')
  }
}

function taken(state: ThreadState, event: Of<'reservation.taken/1'>): ThreadState {
  const { generation } = event.data
  if (state.identity) throw unfoldable(event, 'a thread reserves nothing in its own stream.')
  if (generation !== (state.reservation?.generation ?? 0) + 1) throw unfoldable(event, 'the generation does not follow.')
  const { application_id: application, user_id: user, thread_id: thread, id } = event.data.holder
  const kind = known(event, event.data.kind)
  const holder = { application, user, thread, id }
  return { ...state, reservation: { kind, status: 'taken', generation, holder, takenAt: event.time } }
}

function released(state: ThreadState, event: Of<'reservation.released/1'>): ThreadState {
  const held = state.reservation
  if (held?.status !== 'taken' || held.generation !== event.data.generation)
    throw unfoldable(event, 'that generation is not taken.')
  return { ...state, reservation: { ...held, status: 'released' } }
}

function held(state: ThreadState, event: Of<'reservation.held/1'>): ThreadState {
  if (state.identity) throw unfoldable(event, 'a thread holds no results in its own stream.')
  const {
    application_id: application,
    provider,
    external_id_key: externalIdKey,
    record,
    source,
    expires_at: expiresAt,
  } = event.data
  const result = { version: event.version, application, provider, externalIdKey, record, source, actor: event.actor, expiresAt }
  const { held = [], settled = [] } = state.early ?? {}
  return { ...state, early: { held: [...held, result], settled } }
}

/** Verdicts a stream remembers of results it held. */
const REMEMBERED = 32

function settled(state: ThreadState, event: Of<'reservation.settled/1'>): ThreadState {
  const { held: version, digest, receipt } = event.data
  const { held = [], settled = [] } = state.early ?? {}
  const left = held.filter((one) => one.version !== version)
  if (left.length === held.length) throw unfoldable(event, 'it holds no such result.')
  return { ...state, early: { held: left, settled: [...settled, { digest, receipt }].slice(-REMEMBERED) } }
}

function withdrawn(state: ThreadState, event: Of<'reservation.withdrawn/1'>): ThreadState {
  if (!state.identity) throw unfoldable(event, 'it stands in no thread.')
  const { reservation, generation } = event.data
  return { ...state, withdrawn: new Map(state.withdrawn).set(reservation, generation) }
}
