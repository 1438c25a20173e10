import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const BIN = new URL('../../src/cli/bin.js', import.meta.url).pathname

/** Runs the bin on a Node that says it is another version. */
function on(version: string) {
  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  return spawnSync(process.execPath, ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, BIN, '--version'], {
    encoding: 'utf8',
  })
}

test('an old Node is told what is needed, and ends with 2', () => {
  for (const version of ['0.12.18', '18.20.0', '22.17.1'])
    expect(on(version)).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(`^threadlog needs Node.js 22.18 or newer; this is ${version} `),
    })
})

test('a new enough Node goes on to the published main', () => {
  for (const version of ['22.18.0', '24.0.0']) expect(on(version).stderr).toContain('main.js')
})

test('the file keeps to syntax that old Nodes parse', () => {
  const code = readFileSync(BIN, 'utf8').replace(/^#!.*/, '')
  expect(code).not.toMatch(/=>|`|\b(const|let|class|await|async)\b|\?\.|\?\?/)
})
