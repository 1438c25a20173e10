import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isThreadlogError, reject } from '../base/index.ts'
import type { Agent } from '../harness/index.ts'
import { visible } from './visible.ts'

const EXPECTED = 'a module that exports `agents` (a list), or an agent or a list of them as default'

/**
 * The agents of a module: its export `agents`, or its default export.
 * @throws ThreadlogError `agent_module_invalid`
 */
export async function loadAgents(path: string): Promise<Agent[]> {
  const module = await load(path)
  const found = module['agents'] ?? module['default']
  const agents = Array.isArray(found) ? found : [found]
  if (agents.length > 0 && agents.every(isAgent)) return agents
  throw reject('agent_module_invalid', 'The module exports no agent.', {
    path,
    expected: EXPECTED,
    hint: 'export default defineAgent({ … })',
  })
}

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>
  } catch (error) {
    if (isThreadlogError(error)) throw error
    const { code } = error as NodeJS.ErrnoException
    throw reject('agent_module_invalid', `The module cannot be loaded${code ? ` (${code})` : ''}.`, {
      path,
      expected: EXPECTED,
      cause: error,
    })
  }
}

/** By shape: the module may use another copy of this package. */
function isAgent(value: unknown): value is Agent {
  const { name, revision, model, tools } = (value ?? {}) as Partial<Agent>
  return typeof name === 'string' && typeof revision === 'string' && typeof model === 'object' && tools instanceof Map
}

/** The agent a command means. @throws ThreadlogError `agent_module_invalid` */
export function chooseAgent(agents: readonly Agent[], name: string | undefined, path: string): Agent {
  const found = name === undefined ? (agents.length === 1 ? agents[0] : undefined) : agents.find((agent) => agent.name === name)
  if (found) return found
  throw reject(
    'agent_module_invalid',
    name === undefined ? 'The module has several agents.' : 'The module has no agent of that name.',
    {
      path,
      expected: `--agent with one of ${agents.map((agent) => visible(agent.name)).join(', ')}`,
    },
  )
}
