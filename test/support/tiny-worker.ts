// A worker that answers each connection with its pid, in place of a whole gateway: started by a pool in a test of the pool.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { sendHeartbeats, sendToFirst } from '../../src/workers/channel.ts'

// As one that is held up before it can say anything.
if (process.argv.includes('--slow')) await pause(2_500)
sendHeartbeats()
const server = createServer(socket => {
  socket.on('error', () => {})
  socket.once('data', () => socket.end(String(process.pid)))
})
const given = process.argv.indexOf('--port') + 1
await once(server.listen(given > 0 ? Number(process.argv[given]) : 0, '127.0.0.1'), 'listening')
const { port } = server.address() as AddressInfo
sendToFirst({ ready: { apiUrl: `http://127.0.0.1:${port}` } })
process.on('message', () => {
  server.close()
  process.disconnect?.()
})
