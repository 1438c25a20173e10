import { z } from 'zod'
import type { JsonObject, JsonValue } from '../../base/index.ts'
import { INLINE_PAYLOAD } from '../../events/index.ts'

// The values of the topics `requests` and `checkpoints`: types follow from these, and so does asyncapi.yaml.

/** CloudEvents types of requests. */
export const REQUEST = 'threadlog.request/1'
export const REQUEST_CANCELLED = 'threadlog.request-cancelled/1'
/** CloudEvents type of checkpoints; their `id` is that of the event at the boundary. */
export const CHECKPOINT = 'threadlog.checkpoint/1'

const text = z.string()
const json = z.custom<JsonValue>(() => true)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const version = z.int().min(1)
const stream = sha256.describe('Key of the thread in the log.')

/** A record of the topic `requests` (design §6). Its identity is `continuation_id`. */
export const requestRecordSchema = z.object({
  application_id: text.describe('The application of the thread; send it back.'),
  provider: text.describe('Who is asked.'),
  capability: text.describe('What is asked for; `tool.call` for a tool.'),
  continuation_id: text.describe('The wait, and the identity of the request: the same request may be read twice.'),
  external_id: text.describe('The id to answer under.'),
  schema_id: text.describe('Names the schema of an acceptable result.'),
  tool: text.describe('Stable tool identity, `tool/client/<name>` for instance.'),
  arguments: json.describe(
    `What the model asked for: any JSON; null when its canonical form is longer than ${INLINE_PAYLOAD} bytes.`,
  ),
  arguments_ref: z
    .object({ digest: sha256, size: z.int().min(0), media_type: text })
    .optional()
    .describe('Where arguments that are too long for this record are kept: SHA-256 and size of their canonical JSON.'),
  idempotency_key: text.describe('The key of the call (R13): the same however often the request is read.'),
  proposal_digest: text.describe('Digest of tool, arguments and definition.'),
  deadline: z.int().nullable().describe('Epoch milliseconds.'),
  stream,
  version: version.describe('Version of the event that armed the wait, or ended it.'),
  cancelled: z.literal(true).optional().describe('The request is taken back.'),
})
export type RequestRecord = z.infer<typeof requestRecordSchema>

/** Largest state that travels inside its checkpoint, in bytes of canonical JSON. */
export const INLINE_STATE = 65_536

/** A record of the topic `checkpoints`. Absolute: each is understood alone, and one that is not newer by `version` is to be dropped. */
export const checkpointRecordSchema = z.object({
  application_id: text,
  user_id: text,
  thread_id: text,
  stream,
  version: version.describe('Version of the event whose state this is. A record that is not newer is to be dropped.'),
  hash: sha256.describe('Hash of that event.'),
  run_id: text,
  invocation_id: text,
  status: z.enum(['suspended', 'completed', 'failed', 'cancelled']),
  time: z.number().describe('Epoch milliseconds.'),
  state_digest: sha256.describe('SHA-256 of the canonical JSON of the HarnessState.'),
  position: z
    .object({ partition: z.int().min(0), offset: z.string().regex(/^\d+$/).describe('Decimal digits.') })
    .describe('Where the event stands in the log.'),
  waits: z.array(text).describe('Ids of the waits still to be answered, oldest first.'),
  state: z
    .custom<JsonObject | null>(() => true)
    .describe(`The HarnessState, an object; null when its canonical JSON is longer than ${INLINE_STATE} bytes.`),
})
export type CheckpointRecord = z.infer<typeof checkpointRecordSchema>
export type CheckpointStatus = CheckpointRecord['status']
