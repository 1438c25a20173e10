import type { Command } from 'commander'

/** Ids of waits are 32 characters of base64url: one in 64 begins with a dash, as options do. */
const DASHED_ID = /^-[\w-]{31}$/

/** Moves wait ids that look like options behind `--`, unless they are the value of an option. */
export function withDashedIds(program: Command, args: readonly string[]): string[] {
  const command = program.commands.find((candidate) => args.includes(candidate.name()))
  const options = [...program.options, ...commandsOf(command).flatMap((each) => each.options)]
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  const takesValue = (flag: string | undefined): boolean =>
    options.some((option) => option.required && (option.long === flag || option.short === flag))
  const isId = (arg: string, i: number): boolean => DASHED_ID.test(arg) && !takesValue(own[i - 1])
  const ids = own.filter(isId)
  if (ids.length === 0) return [...args]
  return [...own.filter((arg, i) => !isId(arg, i)), '--', ...ids, ...(end < 0 ? [] : args.slice(end + 1))]
}

const commandsOf = (command: Command | undefined): Command[] => (command ? [command, ...command.commands] : [])

/** True if errors are to be JSON: also for a command line that cannot be parsed. */
export function wantsJson(args: readonly string[]): boolean {
  return args.some(
    (arg, i) =>
      arg === '--json' ||
      /^(-o|--output=)jsonl?$/.test(arg) ||
      (/^jsonl?$/.test(arg) && /^(-o|--output)$/.test(args[i - 1] ?? '')),
  )
}
