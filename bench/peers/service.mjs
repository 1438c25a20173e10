// The same work as a Restate service: a step of 2 KB, a wait for a result from outside, a second step of 2 KB.
//   node bench/peers/service.mjs <port>
import * as restate from '@restatedev/restate-sdk'

const now = () => Number(process.hrtime.bigint()) / 1e6

let outbox = {}
function tell(kind, order, value) {
  if (Object.keys(outbox).length === 0)
    setImmediate(() => {
      process.send(outbox)
      outbox = {}
    })
  outbox[kind] = [...(outbox[kind] ?? []), [order, value]]
}

const payer = restate.service({
  name: 'payer',
  handlers: {
    run: async (context, order) => {
      await context.run('message', () => 'x'.repeat(2_000))
      const answer = context.awakeable()
      await context.run('announce', () => tell('requests', order, answer.id))
      const { order: answered } = await answer.promise
      tell('asked', answered, now())
      await context.run('message', () => 'y'.repeat(2_000))
      return 'done'
    },
  },
})

await restate.serve({ services: [payer], port: Number(process.argv[2]) })
process.on('disconnect', () => process.exit())
process.send({ ready: true })
