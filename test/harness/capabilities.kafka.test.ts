import { capabilityCases } from '../support/capability-cases.ts'
import { onKafka } from '../support/cases-on-logs.ts'

onKafka('capabilities', capabilityCases)
