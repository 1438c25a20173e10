import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { socketFactory } from '../../../src/log/kafka/connection.ts'

test('a socket that is given up while it connects, by many who wait for it, has one listener for that', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const socket = socketFactory({ host: '127.0.0.1', port, ssl: undefined as never, onConnect: () => {} })
  const before = socket.listenerCount('connect')
  for (let i = 0; i < 40; i++) socket.unref()
  expect(socket.listenerCount('connect')).toBeLessThanOrEqual(before + 1)
  await once(socket, 'connect')
  socket.unref()
  socket.destroy()
  server.close()
})
