import { retryLater } from '../base/index.ts'
import { continuationSchemaId, type Validator, type Validators } from '../continuations/index.ts'
import { type Agent, resultSchemaId } from '../harness/index.ts'

/** The result checks of all external tools of these agents, by provider and schema id. */
export function resultValidators(agents: () => Iterable<Agent>, extra?: Validators): Validators {
  return {
    find(provider, schemaId): Validator | undefined {
      for (const agent of agents())
        for (const tool of agent.tools.values())
          if (tool.validateResult && tool.provider === provider && resultSchemaId(tool) === schemaId) return tool.validateResult
      return extra?.find(provider, schemaId)
    },
  }
}

const ANYTHING = continuationSchemaId({})

/**
 * As `validators`, but a result whose schema this process does not know is not accepted unchecked: submitting it is refused for now.
 * For API callers; on the results topic an engine that has the agent checks (decision 0003).
 */
export const strict = (validators: Validators): Validators => ({
  find: (provider, schemaId) => validators.find(provider, schemaId) ?? (schemaId === ANYTHING ? undefined : unavailable),
})

const unavailable: Validator = () => {
  throw retryLater('validator_unavailable', 'This process does not know the result schema of the waiting tool.', {
    path: 'schema_id',
    expected: 'a process opened with the agent that owns the tool',
    hint: 'Pass the agent to openThreadlog, or send the result through the results topic, where an engine that has the agent checks it.',
  })
}
