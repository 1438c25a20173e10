import { onKafka } from '../support/cases-on-logs.ts'
import { resubmitCases } from '../support/resubmit-cases.ts'

onKafka('jobs submitted again', resubmitCases)
