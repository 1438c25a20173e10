import type { LogBackend } from '../../../src/log/index.ts'
import { openKafkaLog } from '../../../src/log/kafka/index.ts'

/** What a child process of the conformance suite opens. */
export const openLog = (url: string): Promise<LogBackend> => openKafkaLog(JSON.parse(url))
