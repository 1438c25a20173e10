import { attachCases } from '../support/attach-cases.ts'
import { onKafka } from '../support/cases-on-logs.ts'

onKafka('a tool that stays in memory', attachCases)
