import { createOpenAICompatible } from '@ai-sdk/openai-compatible'

type Env = Record<string, string | undefined>

/** True when the environment names a provider of the caller's own. */
export const hasProvider = (env: Env = process.env): boolean => Boolean(env['OPENAI_BASE_URL'] && env['OPENAI_MODEL'])

/** The model that `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` name. */
export function chatModel(env: Env = process.env) {
  const { OPENAI_BASE_URL: baseURL = '', OPENAI_API_KEY: apiKey, OPENAI_MODEL: model = '' } = env
  return createOpenAICompatible({ name: 'openai', baseURL, apiKey, includeUsage: true })(model)
}

/** The environment in which {@link chatModel} finds a server of ours. */
export const modelEnv = (url: string) => ({ OPENAI_BASE_URL: url, OPENAI_API_KEY: 'none', OPENAI_MODEL: 'scripted' })
