// Says where the time of a CPU profile went.
//   node bench/profile/main.ts <file.cpuprofile> [number of functions to name]
import { readFileSync } from 'node:fs'
import { hottest, shares } from './categories.ts'

const [file = '', count = '0'] = process.argv.slice(2)
const profile = JSON.parse(readFileSync(file, 'utf8'))
const all = shares(profile)
const busy = all.filter(({ category }) => category !== 'idle').reduce((sum, { ms }) => sum + ms, 0)
for (const { category, ms } of all)
  console.log(`${category.padEnd(34)}${ms.toFixed(1).padStart(10)} ms${((ms / busy) * 100).toFixed(1).padStart(8)} % of busy`)
for (const { place, ms } of hottest(profile, Number(count))) console.log(`${ms.toFixed(1).padStart(10)} ms  ${place}`)
