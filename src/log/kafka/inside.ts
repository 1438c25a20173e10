import type { Kafka } from 'kafkajs'
import { encodeProduce, type ProduceArguments } from './batch.ts'

// What kafkajs 2.2.4 does inside and costs more than it has to: repaired in the clusters of one client, not in the library that the host
// application may use too (test/log/kafka/inside.kafka.test.ts holds this file and direct.ts to that version).

interface Queue {
  readonly pending: readonly unknown[]
  scheduleCheckPendingRequests(): void
}

interface ConnectionPool {
  readonly pool: readonly { readonly requestQueue: Queue }[]
}

interface Coordinator {
  groupId: string
  coordinatorType: number
}

/** A request on its way out. */
interface Call {
  readonly request: { readonly apiVersion: number; encode(): Promise<unknown> }
}

type Protocol = (args: ProduceArguments) => Call

interface Broker {
  produce(args: ProduceArguments): Promise<unknown>
  lookupRequest(kind: number, definition: unknown): Protocol
}

interface Cluster {
  readonly connectionPoolBuilder: { build(to?: object): Promise<ConnectionPool> }
  findBroker(of: { nodeId: string }): Promise<Broker>
  findGroupCoordinatorMetadata(of: Coordinator): Promise<unknown>
}

type CreateCluster = (options: object) => Cluster

/** Milliseconds for which an answer to who coordinates holds; who is asked wrongly says so, and changes nothing. */
const COORDINATOR_MS = 1_000

/** Where a client keeps the function that makes its clusters. */
export function clusterKey(kafka: Kafka): symbol {
  const symbol = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster')
  if (!symbol) throw new Error('this version of kafkajs is not known')
  return symbol
}

/** The client, with cheaper clusters from now on. */
export function tuned(kafka: Kafka): Kafka {
  const inner = kafka as unknown as Record<symbol, CreateCluster>
  const key = clusterKey(kafka)
  const create = inner[key]!
  inner[key] = (options) => {
    const cluster = create.call(kafka, options)
    stopIdleTimers(cluster)
    keepCoordinators(cluster)
    encodeOnce(cluster)
    return cluster
  }
  return kafka
}

/** Every connection has a timer that fires each millisecond for ever, looking for requests that wait; it is needed while some do. */
function stopIdleTimers({ connectionPoolBuilder: builder }: Cluster): void {
  const build = builder.build
  builder.build = async (to) => {
    const pool = await build.call(builder, to)
    for (const { requestQueue: queue } of pool.pool) {
      const schedule = queue.scheduleCheckPendingRequests
      queue.scheduleCheckPendingRequests = () => {
        if (queue.pending.length > 0) schedule.call(queue)
      }
    }
    return pool
  }
}

/** Who coordinates is asked before each of the four requests of a transaction. */
function keepCoordinators(cluster: Cluster): void {
  const find = cluster.findGroupCoordinatorMetadata
  const known = new Map<string, { at: number; found: unknown }>()
  cluster.findGroupCoordinatorMetadata = async (of) => {
    const key = `${of.coordinatorType} ${of.groupId}`
    const kept = known.get(key)
    if (kept && performance.now() - kept.at < COORDINATOR_MS) return kept.found
    const found = await find.call(cluster, of)
    known.set(key, { at: performance.now(), found })
    return found
  }
}

/** Versions of a produce request whose body is written alike. */
const ALIKE = { from: 3, to: 8 }

/** What is produced is written into one buffer; everything else about the request is the library's. */
function encodeOnce(cluster: Cluster): void {
  const find = cluster.findBroker
  const known = new WeakSet<Broker>()
  cluster.findBroker = async (of) => {
    const broker = await find.call(cluster, of)
    if (known.has(broker)) return broker
    known.add(broker)
    const produce = broker.produce
    const lookupRequest: Broker['lookupRequest'] = (kind, definition) => (args) =>
      written(broker.lookupRequest(kind, definition)(args), args)
    broker.produce = (args) => produce.call(Object.create(broker, { lookupRequest: { value: lookupRequest } }), args)
    return broker
  }
}

function written(call: Call, args: ProduceArguments): Call {
  const { apiVersion } = call.request
  if (args.compression || apiVersion < ALIKE.from || apiVersion > ALIKE.to) return call
  const encode = async () => {
    const bytes = encodeProduce(args)
    return { buf: bytes, buffer: bytes }
  }
  return { ...call, request: { ...call.request, encode } }
}
