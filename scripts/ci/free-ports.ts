// Prints ports of 127.0.0.1 that nobody listens on.
//   node scripts/ci/free-ports.ts COUNT
import { createServer } from 'node:net'

const servers = await Promise.all(
  Array.from({ length: Number(process.argv[2] ?? 1) }, async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server
  }),
)
console.log(servers.map((server) => (server.address() as { port: number }).port).join(' '))
for (const server of servers) server.close()
