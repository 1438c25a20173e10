import { results } from './borders/results.ts'
import type { Border } from './kit/border.ts'

/** Every border, by the order in which it is run. */
export const borders = (): Border[] => [results] as Border[]
