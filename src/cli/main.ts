import { constants } from 'node:os'
import { wantsJson, withDashedIds } from './arguments.ts'
import { errorText, exitCodeOf, isHelp } from './errors.ts'
import { Io } from './io.ts'
import type { Session } from './options.ts'
import { buildProgram } from './program.ts'

const io = new Io()
const stop = new AbortController()
let interrupted: number | undefined

// The first signal asks for a clean end, the second does not wait for it.
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.on(name, () => {
    const code = 128 + constants.signals[name]
    if (interrupted !== undefined) process.exit(code)
    interrupted = code
    stop.abort()
  })

const args = process.argv.slice(2)
const session: Session = { io, interrupt: stop.signal, code: 0 }

async function main(): Promise<number> {
  const program = buildProgram(session)
  try {
    if (args.length === 0) program.help({ error: true })
    await program.parseAsync(withDashedIds(program, args), { from: 'user' })
    return session.code
  } catch (error) {
    const code = exitCodeOf(error)
    if (code !== 0 && interrupted === undefined && !isHelp(error)) process.stderr.write(errorText(error, wantsJson(args)))
    return code
  }
}

const code = await main()
await io.flush()
// Also with what an agent's module has left open: connections, timers.
process.exit(interrupted ?? (io.gone.aborted ? 0 : code))
