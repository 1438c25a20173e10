import type { Profiler } from 'node:inspector'

type Profile = Profiler.Profile

/** A frame belongs to the first category whose pattern its place matches; places are looked at from the innermost frame outwards. */
const CATEGORIES: readonly [category: string, pattern: RegExp][] = [
  ['garbage collection', /^\(garbage collector\)$/],
  ['idle', /^\(idle\)$/],
  ['program (native, unattributed)', /^\(program\)$/],
  ['SQL: COMMIT', /^sql_COMMIT/],
  ['SQL: BEGIN, data_version', /^sql_(BEGIN|PRAGMA)/],
  ['SQL: receipts, requests, checkpoints', /^sql_.*_(receipts|requests|results|checkpoints|progress)_/],
  ['SQL: index tables', /^sql_.*_(threads|waits|snapshots)_/],
  ['SQL: events and streams', /^sql_.*_(events|streams)_/],
  ['SQL: other', /^sql_/],
  ['benchmark itself', /\/bench\//],
  ['Kafka: encoding what is produced', /\/log\/kafka\/batch\.|\/kafkajs\/src\/protocol\/(request|encoder)\./],
  ['Kafka: client', /\/kafkajs\/|\/log\/kafka\/(inside|direct)\./],
  ['sockets', /node:net|node:internal\/(?:stream_base|js_stream)/],
  ['HTTP', /\/@?hono\/|\/engine\/http\.|node:_http|node:internal\/http|node:internal\/deps\/undici/],
  ['Avro', /\/avsc\//],
  ['schema validation (zod)', /\/zod\//],
  ['hash', /\/base\/hash\.|node:internal\/crypto/],
  ['event fit and encoding', /\/events\//],
  ['canonical JSON and payloads', /\/base\/(json|payload|json-parse)\./],
  ['ids', /\/base\/(ids|clock)\./],
  ['fold', /\/projections\/(evolve|fold|state|unfoldable)|\/base\/append-only\./],
  ['projectors and checkpoints', /\/projections\/(indexes|harness-state|snapshot)|\/messages\/state/],
  ['thread store', /\/projections\//],
  ['model: conversion and stream', /\/models\/|node:internal\/webstreams/],
  ['messages', /\/messages\//],
  ['planner', /\/harness\/(plan|begin|suspend|drafts|classify)/],
  ['harness', /\/harness\//],
  ['waits: judging and receipts', /\/continuations\//],
  ['engine', /\/engine\//],
  ['log adapter', /\/log\//],
]

export interface Share {
  category: string
  /** Milliseconds of self time. */
  ms: number
}

type Node = Profile['nodes'][number]

/** Self time of a CPU profile by category, the largest first. */
export function shares(profile: Profile): Share[] {
  const time = selfTimes(profile)
  const parents = new Map(profile.nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id] as const)))
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const total = new Map<string, number>()
  for (const [id, micros] of time) {
    const category = categoryOf(id, nodes, parents)
    total.set(category, (total.get(category) ?? 0) + micros / 1_000)
  }
  return [...total].map(([category, ms]) => ({ category, ms })).sort((a, b) => b.ms - a.ms)
}

/** Self time of single functions, the largest first. */
export function hottest(profile: Profile, count: number): { place: string; ms: number }[] {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const total = new Map<string, number>()
  for (const [id, micros] of selfTimes(profile)) {
    const { functionName, url, lineNumber } = (nodes.get(id) as Node).callFrame
    const place = `${functionName || '(anonymous)'} ${url.replace(/^.*\/(?=(src|bench|node_modules)\/)/, '')}:${lineNumber + 1}`
    total.set(place, (total.get(place) ?? 0) + micros / 1_000)
  }
  return [...total]
    .map(([place, ms]) => ({ place, ms }))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, count)
}

function selfTimes({ samples = [], timeDeltas = [] }: Profile): Map<number, number> {
  const time = new Map<number, number>()
  for (const [i, id] of samples.entries()) time.set(id, (time.get(id) ?? 0) + (timeDeltas[i + 1] ?? 0))
  return time
}

function categoryOf(id: number, nodes: ReadonlyMap<number, Node>, parents: ReadonlyMap<number, number>): string {
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const { functionName, url } = (nodes.get(at) as Node).callFrame
    const found = CATEGORIES.find(([, pattern]) => pattern.test(functionName) || (url !== '' && pattern.test(url)))
    if (found) return found[0]
  }
  return 'other'
}

/** Time of functions of src/ with all they call, the largest first. A function that calls itself counts once. */
export function inclusive(profile: Profile, count: number): { place: string; ms: number }[] {
  const time = selfTimes(profile)
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
  const total = new Map<string, number>()
  const walk = (id: number, above: ReadonlySet<string>): number => {
    const node = nodes.get(id) as Node
    const { functionName, url, lineNumber } = node.callFrame
    const place = `${functionName || '(anonymous)'} ${url.replace(/^.*\/(?=src\/)/, '')}:${lineNumber + 1}`
    const inside = new Set(above).add(place)
    let sum = (time.get(id) ?? 0) / 1_000
    for (const child of node.children ?? []) sum += walk(child, inside)
    if (!above.has(place)) total.set(place, (total.get(place) ?? 0) + sum)
    return sum
  }
  walk((profile.nodes[0] as Node).id, new Set())
  return [...total]
    .map(([place, ms]) => ({ place, ms }))
    .filter(({ place }) => / src\/|^sql_/.test(place))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, count)
}
