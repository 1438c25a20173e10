import type { Command } from 'commander'

/** Ids of waits are 32 characters of base64url: one in 64 begins with a dash, as options do. The second form is the beginning of one. */
const DASHED_IDS = [/^-[\w-]{31}$/, /^-\w[\w-]{6,30}$/]

/** Moves wait ids that look like options behind `--`, unless they are the value of an option. */
export function withDashedIds(program: Command, args: readonly string[]): string[] {
  const command = program.commands.find((candidate) => args.includes(candidate.name()))
  if (command?.registeredArguments[0]?.name() !== 'wait') return [...args]
  const options = [...program.options, ...command.options]
  const end = args.indexOf('--')
  const own = end < 0 ? args : args.slice(0, end)
  const takesValue = (flag: string | undefined): boolean =>
    options.some((option) => option.required && (option.long === flag || option.short === flag))
  const isId = (arg: string, i: number): boolean => DASHED_IDS.some((form) => form.test(arg)) && !takesValue(own[i - 1])
  const ids = own.filter(isId)
  if (ids.length === 0) return [...args]
  return [...own.filter((arg, i) => !isId(arg, i)), '--', ...ids, ...(end < 0 ? [] : args.slice(end + 1))]
}

/** True if errors are to be JSON: also for a command line that cannot be parsed. */
export function wantsJson(args: readonly string[]): boolean {
  return args.some(
    (arg, i) =>
      arg === '--json' ||
      /^(-o|--output=)jsonl?$/.test(arg) ||
      (/^jsonl?$/.test(arg) && /^(-o|--output)$/.test(args[i - 1] ?? '')),
  )
}
