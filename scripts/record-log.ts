// Records logs of this version, with what they fold to: test/fixtures/logs/<fold version>/<name>.ndjson.
//   node scripts/record-log.ts                what is not there yet; after FOLD_VERSION was raised, that is everything
//   node scripts/record-log.ts --unreleased   again what is there for this fold version: only while no release has it
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { FOLD_VERSION } from '../src/projections/index.ts'
import { print, writeLogs } from '../test/support/recorded/recorded-log.ts'
import { scenarios } from '../test/support/recorded/scenarios.ts'
import { Stage } from '../test/support/recorded/stage.ts'

/** Plays every scenario; the content of its file, by name. */
export async function recordAll(): Promise<Map<string, string>> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  const files = new Map<string, string>()
  for (const [name, play] of Object.entries(scenarios)) {
    const stage = await Stage.open(`recorded_${name.replaceAll('-', '')}`)
    await play(stage)
    files.set(name, print(name, await stage.records(), version))
    await stage.close()
  }
  return files
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { unreleased: { type: 'boolean' } } })
  const { written, kept } = writeLogs(await recordAll(), values)
  console.log(`fold version ${FOLD_VERSION}: ${written.length} written (${written.join(', ')}), ${kept.length} kept`)
  if (kept.length > 0 && written.length === 0) console.log('what is recorded stays; --unreleased records it again')
}
