import type { Command } from 'commander'

/** Adds the argument that names a thread, and the options that complete a short name. */
export const threadArgument = (command: Command): Command =>
  command
    .argument(
      '<thread>',
      'app/user/thread (parts percent-encoded), user/thread or thread alone, a stream key, or its first 8 or more digits',
    )
    .option('--app <application>', "application of a short thread name (default: 'default')")
    .option('--user <user>', "user of a short thread name (default: 'default')")
