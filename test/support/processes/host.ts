import { type LogAddress, openGround } from '../chaos/ground.ts'
import { options, serve } from './child.ts'
import { type Gate, hostCalls } from './host-calls.ts'

// A foreign host as its own process that stands still at an event: `host.ts '{"address": …, "gate": …}'`.

const o = options<{ address: LogAddress; gate: Gate }>()
serve(await hostCalls(await openGround(o.address), o.gate))
