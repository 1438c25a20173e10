#!/usr/bin/env node
// biome-ignore-all lint: this file must parse on every Node, so it keeps to ES5 but for the import at its end.
/* The published command. Everything else of it is in ./main.js, which needs the Node version checked here. */
var WANTED = [22, 18]
var found = process.versions.node.split('.').map(Number)
var main = './main.js'

if (found[0] > WANTED[0] || (found[0] === WANTED[0] && found[1] >= WANTED[1])) {
  import(main).catch(function (error) {
    console.error(error)
    process.exit(5)
  })
} else {
  console.error(
    'threadlog needs Node.js ' +
      WANTED.join('.') +
      ' or newer; this is ' +
      process.versions.node +
      ' (' +
      process.execPath +
      ').',
  )
  console.error('Install a newer one from https://nodejs.org, or put it first on the PATH.')
  process.exit(2)
}
