// Writes asyncapi.yaml from what the code declares: schemas of the records, names and settings of the topics.
//   node scripts/asyncapi.ts            write
//   node scripts/asyncapi.ts --check    compare only; exit 1 when it differs
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { stringify } from 'yaml'
import { z } from 'zod'
import { MAX_RECORD_BYTES, MAX_RESULT_BYTES, RECEIPT, receiptSchema, resultRecordSchema } from '../src/continuations/index.ts'
import { fileSchemas } from '../src/events/index.ts'
import { toKafkaHeaders } from '../src/log/kafka/headers.ts'
import { DEFAULT_PARTITIONS, DEFAULT_PREFIX, type KafkaTopic, SETTINGS } from '../src/log/kafka/topic-plan.ts'
import { CHECKPOINT, checkpointRecordSchema, REQUEST, REQUEST_CANCELLED, requestRecordSchema } from '../src/projections/index.ts'

const FILE = new URL('../asyncapi.yaml', import.meta.url)
const BINDING = '0.5.0'
const HEAD = '# Written by scripts/asyncapi.ts from the code; do not edit.\n'

type Node = Record<string, unknown>

/** JSON Schema of a record as others read or write it. */
function schemaOf(schema: z.ZodType, title: string): Node {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: 'draft-07', io: 'input', unrepresentable: 'any' })
  return { title, ...rest }
}

const text = (description: string, more: Node = {}): Node => ({ type: 'string', description, ...more })

/** Headers of the records the engine writes, by the names they have on Kafka. */
function headers(types: readonly string[], id: string, subject: string | undefined, time: string): Node {
  const attributes: Record<string, Node> = {
    specversion: { type: 'string', const: '1.0' },
    id: text(id, { minLength: 1 }),
    source: text('Together with ce_id it names the record: equal whenever it is made again.', { format: 'uri-reference' }),
    type: { type: 'string', enum: types },
    subject: text(
      subject ??
        'The continuation_id that was sent, or the hex SHA-256 of provider, zero byte and external_id; absent without either.',
      { minLength: 1 },
    ),
    time: text(time, { format: 'date-time' }),
    datacontenttype: { type: 'string', const: 'application/json' },
  }
  const names = toKafkaHeaders(Object.fromEntries(Object.keys(attributes).map((name) => [name, name])))
  const required = Object.keys(names).filter((name) => subject !== undefined || names[name] !== 'subject')
  return {
    type: 'object',
    required,
    properties: Object.fromEntries(Object.entries(names).map(([name, attribute]) => [name, attributes[attribute]!])),
  }
}

const keyed = (description: string, more: Node = {}): Node => ({
  kafka: { key: text(description), ...more, bindingVersion: BINDING },
})

const messages = {
  Request: {
    summary: 'An armed wait asks its provider, or takes the question back.',
    contentType: 'application/json',
    headers: headers(
      [REQUEST, REQUEST_CANCELLED],
      'The continuation_id; behind it `:cancelled` when the request is taken back.',
      'The continuation_id.',
      'Time of the event it follows from.',
    ),
    payload: schemaOf(requestRecordSchema, 'Request'),
    bindings: keyed('Key of the thread in the log: the field `stream`.'),
  },
  ResultJson: {
    summary: 'What the outside world answers, as JSON.',
    description:
      `\`external_id\` or \`continuation_id\`, and \`result\` or \`failure\`. At most ${MAX_RECORD_BYTES} bytes, the result ${MAX_RESULT_BYTES}. ` +
      'A null is an absent field, `result` excepted.',
    contentType: 'application/json',
    payload: schemaOf(resultRecordSchema, 'Result'),
    bindings: keyed('Any. Results of one wait keep their order if they have one key.'),
  },
  ResultAvro: {
    summary: 'The same in Avro, in the framing of Confluent: a zero byte, the schema id (4 bytes, big endian), the body.',
    contentType: 'application/vnd.confluent.avro',
    payload: { schemaFormat: 'application/vnd.apache.avro;version=1.9.0', schema: avroResult() },
    bindings: keyed('As for JSON.', { schemaIdLocation: 'payload', schemaIdPayloadEncoding: 'confluent' }),
  },
  Receipt: {
    summary: 'What became of one result.',
    contentType: 'application/json',
    headers: headers(
      [RECEIPT],
      'The place of the result it answers, and its sequence.',
      undefined,
      'Time the log recorded the result; of a call, that of the receipt.',
    ),
    payload: schemaOf(receiptSchema, 'Receipt'),
    bindings: keyed('The key of the result it answers; of a call, the address of the wait.'),
  },
  Checkpoint: {
    summary: 'Where a thread stands at a safe boundary of a run.',
    contentType: 'application/json',
    headers: headers(
      [CHECKPOINT],
      'Id of the event at the boundary.',
      'Application, user and thread, each percent-encoded, with slashes between.',
      'Time of that event.',
    ),
    payload: schemaOf(checkpointRecordSchema, 'Checkpoint'),
    bindings: keyed('Key of the thread in the log: the field `stream`.'),
  },
}

function avroResult(): unknown {
  const source = fileSchemas()
  const id = source.id('result/1')
  return id === undefined ? undefined : JSON.parse(JSON.stringify(source.schema(id)?.avro), splitName)
}

/** AsyncAPI's schema of Avro knows no names with a namespace in them, which Avro allows. */
function splitName(_: string, value: unknown): unknown {
  const { name } = (value ?? {}) as { name?: unknown }
  const dot = typeof name === 'string' ? name.lastIndexOf('.') : -1
  if (typeof name !== 'string' || dot < 0) return value
  return { ...(value as object), name: name.slice(dot + 1), namespace: name.slice(0, dot) }
}

type Message = keyof typeof messages
type Edge = Extract<KafkaTopic, 'requests' | 'results' | 'receipts' | 'checkpoints'>

const topics: Record<Edge, { description: string; action: 'send' | 'receive'; messages: Message[] }> = {
  requests: { description: 'What waits ask of providers.', action: 'send', messages: ['Request'] },
  results: { description: 'What providers answer.', action: 'receive', messages: ['ResultJson', 'ResultAvro'] },
  receipts: {
    description: 'One final receipt for each record of results, in the partition of that record.',
    action: 'send',
    messages: ['Receipt'],
  },
  checkpoints: {
    description: 'The state of each thread, compacted. Keep the highest version of each stream.',
    action: 'send',
    messages: ['Checkpoint'],
  },
}

const NUMBERS = new Set(['retention.ms', 'retention.bytes', 'max.message.bytes'])

function channel(topic: Edge): Node {
  const { description, messages: names } = topics[topic]
  const settings = SETTINGS[topic].map(({ name, value }) =>
    name === 'cleanup.policy' ? [name, [value]] : [name, NUMBERS.has(name) ? Number(value) : value],
  )
  return {
    address: `{prefix}.${topic}`,
    description,
    messages: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    parameters: { prefix: { description: 'Prefix of all topics of one log.', default: DEFAULT_PREFIX } },
    bindings: {
      kafka: { partitions: DEFAULT_PARTITIONS, topicConfiguration: Object.fromEntries(settings), bindingVersion: BINDING },
    },
  }
}

/** The document. */
export function asyncapi(): Node {
  const names = Object.keys(topics) as Edge[]
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'threadlog on Kafka',
      version: '1',
      description:
        'The topics by which other systems take part. What the engine does is `send` and `receive`. All other topics are private.',
      license: { name: 'Apache-2.0' },
    },
    defaultContentType: 'application/json',
    channels: Object.fromEntries(names.map((topic) => [topic, channel(topic)])),
    operations: Object.fromEntries(
      names.map((topic) => {
        const { action, messages: sent } = topics[topic]
        const refs = sent.map((name) => ({ $ref: `#/channels/${topic}/messages/${name}` }))
        return [`${action}-${topic}`, { action, channel: { $ref: `#/channels/${topic}` }, messages: refs }]
      }),
    ),
    components: { messages },
  }
}

/** Its text, as it stands in the file. */
export const asyncapiText = (): string => `${HEAD}${stringify(asyncapi(), { aliasDuplicateObjects: false, lineWidth: 130 })}`

function main(): number {
  const { values } = parseArgs({ options: { check: { type: 'boolean' } } })
  const wanted = asyncapiText()
  if (!values.check) writeFileSync(FILE, wanted)
  else if (!existsSync(FILE) || readFileSync(FILE, 'utf8') !== wanted) {
    console.error('asyncapi.yaml does not follow from the code: node scripts/asyncapi.ts')
    return 1
  }
  console.log(`asyncapi.yaml: ${Object.keys(topics).length} topics, ${Object.keys(messages).length} messages`)
  return 0
}

if (import.meta.main) process.exitCode = main()
