import type { Store } from './continuation-play.ts'

/** A store with some of its methods replaced. */
export const spoilt = (store: Store, faults: Partial<Store>): Store =>
  new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(faults, name) ?? Reflect.get(target, name, target)
      return typeof method === 'function' ? method.bind(target) : method
    },
  })

/** Of claims for a time: the reference model plays none, the suite has their cases. */
export const LEASE_FAULTS = ['an acknowledgement is not kept', 'a run is written by who has lost its claim']

/** What a store could get wrong, each with the promise it breaks. */
export const FAULTS: Record<string, (store: Store) => Partial<Store>> = {
  'an acknowledgement is not kept': () => ({ acknowledgeContinuation: async () => {} }),
  'a run is written by who has lost its claim': (store) => ({
    transitionRun: (o) =>
      store.transitionRun(o).catch(async (error) => {
        for await (const { wait } of store.waiting(o.scope.applicationId)) {
          const lease = { continuationId: wait.record.continuationId, fence: wait.record.revision }
          return store.transitionRun({ ...o, lease })
        }
        throw error
      }),
  }),
  'a claim succeeds twice': (store) => ({
    claimContinuation: async (o) => {
      const found = await store.getProviderContinuation(o)
      return found?.record.status === 'claimed' ? found.record : store.claimContinuation(o)
    },
  }),
  'arm does not look at the revision': (store) => ({
    armContinuation: async (o) => {
      const found = await store.getProviderContinuation(o)
      return store.armContinuation({ ...o, expectedRevision: found?.record.revision ?? o.expectedRevision })
    },
  }),
  'an equal outcome is taken twice': (store) => ({
    resolveContinuation: (o) =>
      store.resolveContinuation(o).catch(async (error) => {
        const found = await store.getContinuationByExternalId({ ...o, applicationId: o.scope.applicationId })
        if (found && error.details?.same === true) return found.record
        throw error
      }),
  }),
  'an outcome of another schema is taken': (store) => ({
    resolveContinuation: async (o) => {
      const found = await store.getContinuationByExternalId({ ...o, applicationId: o.scope.applicationId })
      return store.resolveContinuation({ ...o, schemaId: found?.record.schemaId ?? o.schemaId })
    },
  }),
  'a wait is read through another user': (store) => {
    const users = new Map<string, string>()
    return {
      suspendContinuation: (o) => {
        users.set(o.record.continuationId, o.record.userId)
        return store.suspendContinuation(o)
      },
      getContinuation: async (o) => {
        const userId = users.get(o.continuationId) ?? o.scope.userId
        return store.getContinuation({ ...o, scope: { ...o.scope, userId } })
      },
    }
  },
  'a look-up does not care for the application': (store) => {
    const applications = new Map<string, string>()
    return {
      suspendContinuation: (o) => {
        applications.set(o.externalId, o.record.applicationId)
        return store.suspendContinuation(o)
      },
      getContinuationByExternalId: async (o) => {
        const applicationId = applications.get(o.externalId) ?? o.applicationId
        return (await store.getContinuationByExternalId(o)) ?? store.getContinuationByExternalId({ ...o, applicationId })
      },
    }
  },
  'the cursor of a list is part of the page': (store) => ({
    listPendingContinuations: async (o) => {
      const page = await store.listPendingContinuations(o)
      const all = await store.listPendingContinuations({ ...o, after: null, limit: 1_000 })
      return [...all.filter(({ record }) => record.continuationId === o.after), ...page].slice(0, o.limit)
    },
  }),
  'a deleted run keeps its waits and their external ids': () => ({ deleteRun: async () => {} }),
  'a replica shows what it saw first': (store) => {
    const first = new Map<string, Awaited<ReturnType<Store['getContinuation']>>>()
    return {
      getContinuation: async (o) => {
        const now = await store.getContinuation(o)
        if (now && !first.has(o.continuationId)) first.set(o.continuationId, now)
        return now && (first.get(o.continuationId) ?? null)
      },
    }
  },
}
