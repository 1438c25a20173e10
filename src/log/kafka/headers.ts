import type { TopicRecord } from '../ports.ts'

type Headers = NonNullable<TopicRecord['headers']>

// CloudEvents' Kafka protocol binding, binary mode: attribute `id` is header `ce_id`, and only `datacontenttype` has a name of Kafka's own.
const PREFIX = 'ce_'
const CONTENT_TYPE = 'content-type'
/** Names an attribute may have. */
const ATTRIBUTE = /^[a-z0-9]+$/

/** The headers of a record as they stand on Kafka; those of no CloudEvent stay as they are. */
export function toKafkaHeaders(headers: Headers): Headers {
  if (headers['specversion'] === undefined) return headers
  return renamed(headers, (name) =>
    name === 'datacontenttype' ? CONTENT_TYPE : ATTRIBUTE.test(name) ? `${PREFIX}${name}` : name,
  )
}

/** The other way round, for whatever program wrote them. */
export function fromKafkaHeaders(headers: Headers): Headers {
  if (headers[`${PREFIX}specversion`] === undefined) return headers
  return renamed(headers, (name) =>
    name === CONTENT_TYPE ? 'datacontenttype' : name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name,
  )
}

/** What is renamed wins over a header that has that name already. */
function renamed(headers: Headers, name: (old: string) => string): Headers {
  const entries = Object.entries(headers)
  const kept = entries.filter(([old]) => name(old) === old)
  return Object.fromEntries([...kept, ...entries.filter(([old]) => name(old) !== old).map(([old, value]) => [name(old), value])])
}
