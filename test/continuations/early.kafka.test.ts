import { onKafka } from '../support/cases-on-logs.ts'
import { earlyCases } from '../support/early-cases.ts'

onKafka('early results', earlyCases)
