// Says where the time of a CPU profile went, for each of `units` things done meanwhile.
//   node bench/profile/main.ts <file.cpuprofile> [units] [functions to name]
import { readFileSync } from 'node:fs'
import { hottest, inclusive, shares } from './categories.ts'

const [file = '', units = '1', count = '0'] = process.argv.slice(2)
const profile = JSON.parse(readFileSync(file, 'utf8'))
const each = (ms: number) => `${((ms * 1_000) / Number(units)).toFixed(1).padStart(9)} µs`
const all = shares(profile)
const busy = all.filter(({ category }) => category !== 'idle').reduce((sum, { ms }) => sum + ms, 0)
for (const { category, ms } of all)
  console.log(`${category.padEnd(38)}${each(ms)}${((ms / busy) * 100).toFixed(1).padStart(7)} %`)
const list = (title: string, places: { place: string; ms: number }[]) => {
  if (places.length > 0) console.log(`\n${title}`)
  for (const { place, ms } of places) console.log(`${each(ms)}  ${place}`)
}
list('by itself', hottest(profile, Number(count)))
list('with all it calls', inclusive(profile, Number(count)))
