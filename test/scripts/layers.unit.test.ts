import { describe, expect, test } from 'vitest'
import { checkLayers } from '../../scripts/layers.ts'
import { tree } from './tree.ts'

/** A tree that keeps every rule, with `files` laid over it. */
const report = (files: Record<string, string> = {}, dependencies: Record<string, string> = {}) =>
  checkLayers(
    tree({
      'package.json': JSON.stringify({ dependencies }),
      'docs/dependencies.md': Object.keys(dependencies)
        .map((name) => `\`${name}\``)
        .join('\n'),
      'src/index.ts': "export * from './engine/index.ts'\n",
      'src/base/index.ts': 'export const base = 1\n',
      'src/messages/index.ts': "export * from '../base/index.ts'\n",
      'src/events/index.ts': "export * from '../base/index.ts'\n",
      'src/log/index.ts': "export * from './memory/index.ts'\n",
      'src/log/ports.ts': 'export interface Port {}\n',
      'src/log/memory/index.ts': "import type { Port } from '../ports.ts'\nexport type Memory = Port\n",
      'src/log/memory/table.ts': 'export {}\n',
      'src/models/index.ts': "export * from '../messages/index.ts'\n",
      'src/harness/index.ts': "export * from '../models/index.ts'\n",
      'src/engine/index.ts': "export * from '../harness/index.ts'\nexport * from '../log/index.ts'\n",
      'src/testing/index.ts': "export * from '../log/index.ts'\n",
      'src/cli/main.ts': "import '../index.ts'\nimport '../engine/index.ts'\n",
      ...files,
    }),
  )
const violations = (files: Record<string, string>, dependencies?: Record<string, string>) =>
  report(files, dependencies).violations

test('a tree that keeps the rules', () => {
  expect(report()).toEqual({ violations: [], notes: [] })
})

describe('directions', () => {
  test.each([
    ['base', 'events', 'events is above base'],
    ['events', 'log', 'log is above events'],
    ['log', 'engine', 'engine is above log'],
    ['engine', 'cli', 'cli is above engine'],
    ['models', 'events', 'models imports messages and base only'],
    ['log', 'models', 'log must not import models'],
    ['cli', 'testing', 'nothing imports testing'],
    ['base', 'misc', 'misc has no place in the order of layers'],
  ])('%s → %s', (above, below, why) => {
    const face = `src/${below}/index.ts`
    const found = violations({ [`src/${above}/probe.ts`]: `import type {} from '../${below}/index.ts'\n`, [face]: 'export {}\n' })
    expect(found).toEqual([`src/${above}/probe.ts imports ${face}: ${why}`])
  })

  test('the main entry does not publish the testing kit', () => {
    expect(violations({ 'src/index.ts': "export * from './testing/index.ts'\n" })).toEqual([
      'src/index.ts imports src/testing/index.ts: nothing imports testing',
    ])
  })

  test('a layer does not import the main entry', () => {
    expect(violations({ 'src/harness/probe.ts': "import '../index.ts'\n" })).toEqual([
      'src/harness/probe.ts imports src/index.ts: only cli and testing import what stands directly in src/',
    ])
  })

  test('nothing leaves src/', () => {
    expect(violations({ 'src/base/probe.ts': "import '../../test/x.ts'\n", 'test/x.ts': '' })).toEqual([
      'src/base/probe.ts imports src/../test/x.ts: outside src/',
    ])
  })
})

describe('faces', () => {
  test('another folder is entered through its index.ts', () => {
    expect(violations({ 'src/engine/probe.ts': "import '../log/ports.ts'\n" })).toEqual([
      'src/engine/probe.ts imports src/log/ports.ts: past the face src/log/index.ts',
    ])
  })

  test('the face of an inner folder is private to its layer', () => {
    expect(violations({ 'src/engine/probe.ts': "import '../log/memory/index.ts'\n" })).toEqual([
      'src/engine/probe.ts imports src/log/memory/index.ts: past the face src/log/index.ts',
    ])
  })

  test('inner folders have faces too', () => {
    expect(violations({ 'src/log/probe.ts': "import './memory/table.ts'\n" })).toEqual([
      'src/log/probe.ts imports src/log/memory/table.ts: past the face src/log/memory/index.ts',
    ])
  })

  test('an inner folder without a face is open to its layer', () => {
    expect(violations({ 'src/log/probe.ts': "import './parts/one.ts'\n", 'src/log/parts/one.ts': '' })).toEqual([])
  })
})

describe('cycles', () => {
  test('type imports count', () => {
    const found = violations({
      'src/base/a.ts': "import type { B } from './b.ts'\n",
      'src/base/b.ts': "export { c } from './c.ts'\n",
      'src/base/c.ts': "type A = import('./a.ts').A\n",
    })
    expect(found).toEqual(['import cycle: src/base/a.ts → src/base/b.ts → src/base/c.ts → src/base/a.ts'])
  })

  test('a file that imports itself', () => {
    expect(violations({ 'src/base/a.ts': "import './a.ts'\n" })).toEqual(['import cycle: src/base/a.ts → src/base/a.ts'])
  })
})

describe('packages', () => {
  test('kafkajs stays out of the main entry, however it is reached', () => {
    const kafka = {
      'src/log/index.ts': "await import('./kafka/index.ts')\n",
      'src/log/kafka/index.ts': "import { Kafka } from 'kafkajs'\n",
    }
    expect(violations(kafka, { kafkajs: '1.0.0' })).toEqual([
      'the main entry reaches kafkajs: src/index.ts → src/engine/index.ts → src/log/index.ts → src/log/kafka/index.ts',
    ])
  })

  test('kafkajs elsewhere is fine', () => {
    expect(violations({ 'src/log/kafka/index.ts': "import { Kafka } from 'kafkajs'\n" }, { kafkajs: '1.0.0' })).toEqual([])
  })

  test('what src/ imports is a dependency', () => {
    expect(violations({ 'src/base/probe.ts': "import { z } from 'zod/v4'\nimport type { A } from '@scope/name/sub'\n" })).toEqual(
      ['src/base/probe.ts imports zod: not in dependencies', 'src/base/probe.ts imports @scope/name: not in dependencies'],
    )
  })

  test('built-in modules carry their prefix', () => {
    expect(violations({ 'src/base/probe.ts': "import 'fs'\nimport 'node:fs'\n" })).toEqual([
      'src/base/probe.ts imports fs: write node:fs',
    ])
  })

  test('every dependency has its line', () => {
    const found = violations(
      { 'src/base/probe.ts': "import 'zod'\n", 'docs/dependencies.md': 'nothing about zod' },
      { zod: '1.0.0' },
    )
    expect(found).toEqual(['zod has no line in docs/dependencies.md'])
  })

  test('an unused dependency is noted', () => {
    expect(report({}, { zod: '1.0.0' })).toEqual({ violations: [], notes: ['zod is a dependency that src/ does not import'] })
  })
})

test('an import of a file that is not there', () => {
  expect(violations({ 'src/base/probe.ts': "import './gone.ts'\n" })).toEqual(['src/base/probe.ts: ./gone.ts does not exist'])
})

test('the bin names built files', () => {
  expect(violations({ 'src/cli/bin.js': "import('./main.js')\n" })).toEqual([])
  expect(violations({ 'src/cli/bin.js': "import('./gone.js')\n" })).toEqual(['src/cli/bin.js: ./gone.js does not exist'])
})

test('sizes', () => {
  const lines = (count: number) => '//\n'.repeat(count)
  const { violations, notes } = report({
    'src/base/a.ts': lines(250),
    'src/base/b.ts': lines(251),
    'scripts/c.ts': lines(400),
    'bench/d.ts': lines(401),
  })
  expect(violations).toEqual(['bench/d.ts has 401 lines, 400 at most: split it by concept'])
  expect(notes).toEqual(['src/base/b.ts has 251 lines', 'scripts/c.ts has 400 lines'])
})
