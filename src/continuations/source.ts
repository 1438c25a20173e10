import type { Source } from '../events/index.ts'

/** The coordinate of a record of a topic. Offsets below 2^53. `time` is epoch milliseconds. */
export const topicSource = (o: {
  cluster: string
  topic: string
  partition: number
  offset: bigint | number
  time: number
}): Source => ({
  cluster: o.cluster,
  topic: o.topic,
  partition: o.partition,
  offset: Number(o.offset),
  record_time: o.time,
  api: null,
  command_id: null,
})

/** The coordinate of a call: which way in, and the id the caller repeats when it is not sure the call arrived. */
export const apiSource = (api: string, commandId: string): Source => ({
  cluster: null,
  topic: null,
  partition: null,
  offset: null,
  record_time: null,
  api,
  command_id: commandId,
})

/** A coordinate as text: the id of a result that names none. */
export const sourceText = (s: Source): string =>
  s.topic === null ? `${s.api}:${s.command_id}` : `${s.cluster}/${s.topic}/${s.partition}/${s.offset}`
