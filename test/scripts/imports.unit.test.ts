import { describe, expect, test } from 'vitest'
import { importsOf } from '../../scripts/imports.ts'

describe('found', () => {
  test.each([
    ["import a from 'x'"],
    ['import a from "x"'],
    ["import 'x'"],
    ["import * as a from 'x'"],
    ["import a, { type b as c } from 'x'"],
    ["import {\n  a, // 'y'\n  /* from 'z' */ b,\n} from 'x'"],
    ["import type { A } from 'x'"],
    ["import a from 'x' with { type: 'json' }"],
    ["export * from 'x'"],
    ["export * as a from 'x'"],
    ["export { a as default } from 'x'"],
    ["export type { A } from 'x'"],
    ["const a = await import('x')"],
    ["const a = `text ${(await import('x')).b} text`"],
    ["let a: import('x').A<typeof import('x')>"],
    ["const a = require( 'x' )"],
    ["const a = import.meta.resolve('x')"],
    ["const a = /['\"`]/, b = 1 / 2\nimport 'x'"],
    ["const a = b / 2 // '\nimport 'x'"],
    ['const glob = "src/**"\nimport \'x\'\nconst other = "**/*.ts"'],
    ["const a = `${{ b: `${1}` }.b} '`\nimport 'x'"],
  ])('%s', (source) => {
    expect(importsOf(source)).toEqual(['x'])
  })
})

describe('not an import', () => {
  test.each([
    ["// import 'x'"],
    ["/** import a from 'x' */"],
    ['const a = "import \'x\'"'],
    ["const a = `\nimport a from 'x'\n`"],
    ["Array.from('x')"],
    ["const from = 'x'"],
    ["const a = { import: 'x', from: 'x' }"],
    ["this.import('x')"],
    ["const a = 'it\\'s', b = 'from'"],
    ['await import(name)'],
  ])('%s', (source) => {
    expect(importsOf(source)).toEqual([])
  })
})
