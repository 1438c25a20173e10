import kafkajs, { type GroupMember, type PartitionAssigner } from 'kafkajs'
import { range } from './topic-plan.ts'

const { AssignerProtocol } = kafkajs

/** Name of the protocol: all members of a group must know it. */
const NAME = 'threadlog-sticky'
const VERSION = 1

/**
 * Shares partitions evenly and moves as few as it can: who has one keeps it, so that one engine's coming or going does not interrupt the
 * runs of the others.
 * @param held partitions this process has now, and would keep
 */
export function stickyAssigner(topic: string, partitions: number, held: () => Iterable<number>): PartitionAssigner {
  return () => ({
    name: NAME,
    version: VERSION,
    protocol: ({ topics }) => ({
      name: NAME,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: VERSION,
        topics,
        userData: Buffer.from(JSON.stringify([...held()])),
      }),
    }),
    assign: async ({ members }) => {
      const shares = divide(partitions, new Map(members.map((member) => [member.memberId, heldBy(member)])))
      return [...shares].map(([memberId, share]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: VERSION,
          assignment: { [topic]: share },
          userData: Buffer.alloc(0),
        }),
      }))
    },
  })
}

function heldBy({ memberMetadata }: GroupMember): number[] {
  try {
    const held: unknown = JSON.parse(String(AssignerProtocol.MemberMetadata.decode(memberMetadata)?.userData))
    return Array.isArray(held) ? held.filter((each) => Number.isInteger(each)) : []
  } catch {
    return []
  }
}

/**
 * Gives each of `members` its share of the partitions `0 … count - 1`, sizes differing by one at most.
 * @param members what each has had until now; of two that name one partition, the first in order of ids keeps it
 */
export function divide(count: number, members: ReadonlyMap<string, readonly number[]>): Map<string, number[]> {
  const free = new Set(range(count))
  const claims = [...members]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, held]) => ({ id, held: held.filter((p) => free.delete(p)) }))
  // The larger shares go to those that have most already.
  claims.sort((a, b) => b.held.length - a.held.length)
  const size = (i: number) => Math.floor(count / claims.length) + (i < count % claims.length ? 1 : 0)
  const shares = claims.map(({ id, held }, i) => {
    const kept = held.slice(0, size(i))
    for (const partition of held.slice(size(i))) free.add(partition)
    return { id, share: kept, size: size(i) }
  })
  const rest = [...free].sort((a, b) => a - b)
  for (const { share, size } of shares) share.push(...rest.splice(0, size - share.length))
  return new Map(shares.map(({ id, share }) => [id, share]))
}
