import type { FloorOptions } from './floor-process.ts'
import { measuredBy } from './measured-by.ts'
import type { Measured } from './resume.ts'

/** Raw grouped rows in a process of their own: what the storage gives at most. */
export const measureFloor = (o: FloorOptions): Promise<Measured> => measuredBy('floor-process.ts', o)
