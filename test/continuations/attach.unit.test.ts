import { attachCases } from '../support/attach-cases.ts'
import { onEmbeddedLogs } from '../support/cases-on-logs.ts'

onEmbeddedLogs('a tool that stays in memory', attachCases)
