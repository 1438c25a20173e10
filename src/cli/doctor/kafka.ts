import { isThreadlogError } from '../../base/index.ts'
import type { Diagnosis } from '../../log/kafka/index.ts'
import { counted } from '../format.ts'
import { cachedReplica, loadKafka } from '../kafka-log.ts'
import type { Finding } from './findings.ts'

/** Looks at a log on Kafka. What keeps from looking further ends the list as an error. */
export async function kafkaFindings(address: string): Promise<Finding[]> {
  const { kafkaAddress, checkTopics, clientOf, diagnoseKafka } = await loadKafka()
  const { replica = cachedReplica, ...where } = kafkaAddress(address)
  try {
    const topics = topicFindings(await checkTopics(clientOf(where), where))
    if (topics.some(({ facts }) => facts['setting'] === 'topic')) return topics
    const found = await diagnoseKafka({ ...where, replica })
    return [clusterFinding(found), ...topics, ...replicaFindings(found), acknowledgementFinding(found), ...engineFindings(found)]
  } catch (error) {
    if (!isThreadlogError(error) || error.code === 'log_url_invalid') throw error
    return [{ name: 'cluster', state: 'error', says: error.message, facts: { code: error.code, path: error.path ?? null } }]
  }
}

const clusterFinding = ({ cluster, brokers, partitions }: Diagnosis): Finding => ({
  name: 'cluster',
  state: 'ok',
  says: `${cluster}, ${counted(brokers, 'broker')}, ${counted(partitions, 'partition')}`,
  facts: { cluster, brokers, partitions },
})

function topicFindings(topics: Diagnosis['topics']): Finding[] {
  if (topics.length === 0) return [{ name: 'topics', state: 'ok', says: 'all as they should be', facts: {} }]
  return topics.map(({ severity, topic, setting, found, expected, because }) => ({
    name: 'topics',
    state: severity,
    says: setting === 'topic' ? `${topic} is missing` : `${topic}: ${setting} is ${found}, not ${expected}: ${because}`,
    facts: { topic, setting, found, expected },
  }))
}

function replicaFindings({ replica }: Diagnosis): Finding[] {
  const { file, state, partitions } = replica
  if (state === 'missing') return [{ name: 'replica', state: 'ok', says: `${file}: not there yet`, facts: { file, state } }]
  if (state !== 'present') {
    const says = state === 'foreign' ? 'a copy of another log, or made for another number of partitions' : 'cannot be read'
    return [{ name: 'replica', state: 'error', says: `${file}: ${says}; remove it to build it anew`, facts: { file, state } }]
  }
  const behind = partitions.reduce((sum, { next, end }) => (end > next ? sum + (end - next) : sum), 0n)
  const voids = partitions.reduce((sum, each) => sum + each.voids, 0)
  const wrong = partitions.flatMap(({ partition, lineage }) => (lineage ? [{ partition, lineage }] : []))
  const places = partitions.map(({ partition, next, end }) => ({ partition, next: String(next), end: String(end) }))
  return [
    {
      name: 'replica',
      state: 'ok',
      says: behind === 0n ? `${file}: at the end of the log` : `${file}: ${behind} offsets before the end of the log`,
      facts: { file, state, behind: String(behind), partitions: places },
    },
    ...wrong.map(({ partition, lineage }) => ({
      name: 'lineage',
      state: 'error' as const,
      says: `partition ${partition}: ${lineage.message}`,
      facts: { partition, code: lineage.code },
    })),
    ...(wrong.length > 0 ? [] : [{ name: 'lineage', state: 'ok' as const, says: 'the log is the one that was read', facts: {} }]),
    { name: 'void records', state: 'ok', says: `${voids}: in the log, never part of a thread`, facts: { voids } },
  ]
}

const acknowledgementFinding = ({ acknowledgement: { samples, p50, p99 } }: Diagnosis): Finding => ({
  name: 'acknowledgement',
  state: 'ok',
  says: `p50 ${p50} ms, p99 ${p99} ms, of ${counted(samples, 'send')} with acks=all`,
  facts: { samples, p50_ms: p50, p99_ms: p99 },
})

function engineFindings({ group, owners, unjudged }: Diagnosis): Finding[] {
  const idle = group.members === 0
  return [
    {
      name: 'engines',
      state: idle && unjudged > 0n ? 'warning' : 'ok',
      says: idle
        ? 'none takes part'
        : `${counted(group.members, 'engine')} share the partitions, group ${group.name} is ${group.state}`,
      facts: { group: group.name, state: group.state, members: group.members },
    },
    {
      name: 'owners',
      state: 'ok',
      says: `${counted(owners.length, 'process')} alive`.replace('processs', 'processes'),
      facts: { owners: owners.map(({ id, pid, ageMs }) => ({ id, pid, age_ms: ageMs })) },
    },
    { name: 'results', state: 'ok', says: `${unjudged} without a receipt`, facts: { unjudged: String(unjudged) } },
  ]
}
