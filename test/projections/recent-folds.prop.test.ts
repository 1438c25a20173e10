import fc from 'fast-check'
import { expect, it } from 'vitest'
import { RecentFolds } from '../../src/projections/recent-folds.ts'

it('keeps the newest folds that fit together, and always the last one', () => {
  const uses = fc.array(fc.record({ stream: fc.constantFrom('a', 'b', 'c', 'd', 'e'), events: fc.integer({ min: 1, max: 9 }) }))
  fc.assert(
    fc.property(uses, fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 20 }), (given, threads, events) => {
      const folds = new RecentFolds<{ events: number }>({ threads, events }, (fold) => fold.events)
      let model: { stream: string; events: number }[] = []
      for (const use of given) {
        folds.set(use.stream, use)
        model = [...model.filter(({ stream }) => stream !== use.stream), use]
        const sum = () => model.reduce((total, fold) => total + fold.events, 0)
        while (model.length > 1 && (model.length > threads || sum() > events)) model.shift()
        for (const stream of ['a', 'b', 'c', 'd', 'e'])
          expect(folds.get(stream)).toBe(model.find((fold) => fold.stream === stream))
      }
    }),
  )
})
