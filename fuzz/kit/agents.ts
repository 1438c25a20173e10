import { worker } from './shop.ts'

/** What the commands `run` and `engine` load. */
export const agents = [worker]
