import { openKafkaLog } from '../../../src/log/kafka/index.ts'
import { options, serve } from '../../support/processes/child.ts'

// Opens a replica and reads the log into it, until it is killed: `replica-reader.ts '{"brokers": […], "prefix": …, "replica": …}'`.

const o = options<{ brokers: string[]; prefix: string; replica: string }>()
serve({ open: async () => void (await openKafkaLog(o)) })
