import type { Any } from './values.ts'

/** Kinds that run an agent. */
export const run: Readonly<Record<string, (v: Any) => Promise<void>>> = {}
