/** The environment without a model provider: whatever is started uses the scripted one. */
export function scriptedEnv(): Record<string, string | undefined> {
  const { OPENAI_BASE_URL: _url, OPENAI_API_KEY: _key, OPENAI_MODEL: _model, ...env } = process.env
  return env
}
