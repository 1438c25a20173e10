import { wantsJson, withDashedIds } from '../../src/cli/arguments.ts'
import { errorText, exitCodeOf, isHelp } from '../../src/cli/errors.ts'
import type { Io } from '../../src/cli/io.ts'
import type { Session } from '../../src/cli/options.ts'
import { buildProgram } from '../../src/cli/program.ts'

export interface Ran {
  /** The exit code; undefined when the process was ended from outside. */
  code: number | undefined
  out: string
  err: string
  /** What was thrown, if anything was. */
  error?: unknown
}

/** Runs `threadlog` with these arguments in this process, as src/cli/main.ts does, and interrupts it after a while. */
export async function command(args: readonly string[], interruptMs = 1_000): Promise<Ran> {
  const [out, err]: [string[], string[]] = [[], []]
  const stop = new AbortController()
  const io = {
    gone: new AbortController().signal,
    color: 'never',
    paint: (_: string, text: string) => text,
    write: async (text: string) => void out.push(text),
    note: (text: string) => void err.push(`${text}\n`),
    flush: async () => {},
  } as unknown as Io
  const session: Session = { io, interrupt: stop.signal, code: 0 }
  const written = process.stderr.write
  // Commander's own words go past the session.
  process.stderr.write = ((text: string) => err.push(String(text)) > 0) as typeof process.stderr.write
  const timer = setTimeout(() => stop.abort(), interruptMs)
  try {
    const program = buildProgram(session)
    if (args.length === 0) program.help({ error: true })
    await program.parseAsync(withDashedIds(program, args), { from: 'user' })
    return { code: session.code, out: out.join(''), err: err.join('') }
  } catch (error) {
    const code = exitCodeOf(error)
    if (code !== 0 && !isHelp(error)) err.push(errorText(error, wantsJson(args)))
    return { code, out: out.join(''), err: err.join(''), error }
  } finally {
    clearTimeout(timer)
    process.stderr.write = written
  }
}
