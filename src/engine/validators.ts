import type { Validator, Validators } from '../continuations/index.ts'
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
