import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DeferredRequests, DeferredToolResults, DeferredToolResume, preflight, remaining } from '../../src/harness/index.ts'
import { responseMessage, textPart } from '../../src/messages/index.ts'
import { batch, callValue, decision, stateOf } from '../support/deferred-batches.ts'

const text = (value: unknown): string => JSON.stringify(value)
const idsOf = (resume: DeferredToolResume | undefined): string[] =>
  resume === undefined
    ? []
    : [...resume.requests.calls, ...resume.requests.approvals].map(({ targetCall }) => targetCall.toolCallId).sort()

test('a batch that fits is accepted; what preflight gives is its own fixed point, and nothing that came in has changed', () => {
  fc.assert(
    fc.property(batch, ({ resume, asked }) => {
      const before = [text(resume), text(asked)]
      const state = stateOf(asked)
      const accepted = preflight(state, resume)
      expect(idsOf(accepted)).toEqual(idsOf(resume))
      expect(text(preflight(state, accepted))).toBe(text(accepted))
      expect(accepted?.recovery).toBe(resume.recovery)
      expect([text(resume), text(asked)]).toEqual(before)
    }),
  )
})

test('row 55: every kind of request and answer survives the way through JSON, and is accepted alike', () => {
  fc.assert(
    fc.property(batch, ({ resume, asked }) => {
      const back = DeferredToolResume.parse(JSON.parse(text(resume)))
      expect(text(back)).toBe(text(resume))
      expect([back.requests, back.results, back.recovery]).toEqual([resume.requests, resume.results, resume.recovery])
      const state = stateOf(asked)
      expect(text(preflight(state, back))).toBe(text(preflight(state, resume)))
    }),
  )
})

test('what remains is what is open, never more than before, and it is found again from what is left', () => {
  fc.assert(
    fc.property(batch, ({ resume, asked, partly, open }) => {
      expect(idsOf(remaining(resume, asked))).toEqual(idsOf(resume))
      const left = remaining(resume, partly)
      expect(idsOf(left)).toEqual([...open].sort())
      if (!left) return
      expect(text(remaining(left, partly))).toBe(text(left))
      expect(text(remaining(left, asked))).toBe(text(left))
      const { requests, results } = left
      expect([...Object.keys(results.calls), ...Object.keys(results.approvals)].sort()).toEqual(idsOf(left))
      for (const metadata of [requests.metadata, results.metadata])
        for (const id of Object.keys(metadata)) expect(open).toContain(id)
      expect(left.recovery).toBe(resume.recovery)
    }),
  )
})

test('each further message can only leave less of a batch, and a later response leaves nothing', () => {
  fc.assert(
    fc.property(batch, ({ resume, asked, partly }) => {
      let known = idsOf(resume)
      for (let length = asked.length; length <= partly.length; length++) {
        const left = idsOf(remaining(resume, partly.slice(0, length)))
        expect(known).toEqual(expect.arrayContaining(left))
        known = left
      }
      const later = responseMessage({ parts: [textPart({ content: 'done' })], timestamp: '2026-01-01T00:00:00Z' })
      expect(remaining(resume, [...partly, later])).toBeUndefined()
    }),
  )
})

test('under recovery, preflight accepts exactly what remains', () => {
  fc.assert(
    fc.property(batch, ({ resume, partly, open }) => {
      const recovering = new DeferredToolResume({ ...resume, recovery: true })
      const accepted = preflight(stateOf(partly), recovering)
      expect(idsOf(accepted)).toEqual([...open].sort())
      if (accepted) expect(text(preflight(stateOf(partly), accepted))).toBe(text(accepted))
    }),
  )
})

test('without recovery, an item that history has answered is refused', () => {
  fc.assert(
    fc.property(batch, ({ resume, partly, open }) => {
      fc.pre(open.length < idsOf(resume).length)
      const fresh = new DeferredToolResume({ ...resume, recovery: false })
      expect(() => preflight(stateOf(partly), fresh)).toThrow(expect.objectContaining({ code: 'deferred_request_completed' }))
    }),
  )
})

test('case 82: values are detached from what they were made of, and frozen through and through', () => {
  const isFrozen = (value: unknown): boolean =>
    typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isFrozen))
  fc.assert(
    fc.property(batch, ({ resume }) => {
      const { requests, results } = resume
      for (const part of [
        resume,
        requests,
        requests.calls,
        requests.approvals,
        requests.metadata,
        results.calls,
        results.approvals,
      ])
        expect(isFrozen(part)).toBe(true)
    }),
  )
  const args = { q: [1] }
  const call = { toolCallId: 'c1', toolName: 't', args }
  const requests = new DeferredRequests({ calls: [{ modelCall: call, targetCall: call, identity: 'i' }] })
  args.q.push(2)
  call.toolName = 'other'
  expect(requests.calls[0]).toMatchObject({ modelCall: { toolName: 't', args: { q: [1] } } })
})

// A call was given as an approval, or the other way round, and was taken for what it looked like.
// Each category has its own requests and its own answers, and no kind of answer of the one passes for one of the other.
test('row 56: an answer in the wrong category is refused, whatever it is', () => {
  fc.assert(
    fc.property(batch, fc.oneof(callValue, decision), ({ resume, asked }, value) => {
      const [call] = resume.requests.calls
      const [approval] = resume.requests.approvals
      const { calls, approvals, metadata } = resume.results
      const without = (map: object, id: string) => Object.fromEntries(Object.entries(map).filter(([key]) => key !== id))
      const swapped = (results: object) =>
        expect(() =>
          preflight(
            stateOf(asked),
            new DeferredToolResume({
              ...resume,
              recovery: false,
              results: new DeferredToolResults(results),
            }),
          ),
        ).toThrow(expect.objectContaining({ code: expect.stringMatching(/^deferred_(results_incomplete|approval_invalid)$/) }))
      if (call) {
        const id = call.targetCall.toolCallId
        swapped({ calls: without(calls, id), approvals: { ...approvals, [id]: value }, metadata })
      }
      if (approval) {
        const id = approval.targetCall.toolCallId
        swapped({ calls: { ...calls, [id]: value }, approvals: without(approvals, id), metadata })
        const isDecision =
          typeof value === 'boolean' || ['approved', 'denied'].includes((value as { is?: string } | null)?.is ?? '')
        if (!isDecision) swapped({ calls, approvals: { ...approvals, [id]: value }, metadata })
      }
    }),
  )
})
