// A worker that answers each connection with its pid, in place of a whole gateway: started by a pool in a test of the pool.

import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { configurationInEffect, sendHeartbeats, sendToFirst } from '../../src/workers/channel.ts'
import { until } from './until.ts'

const given = (name: string): string | undefined => {
  const at = process.argv.indexOf(name)
  return at === -1 ? undefined : process.argv[at + 1]
}
// As one that is held up before it can say anything.
if (process.argv.includes('--slow')) await pause(2_500)
sendHeartbeats()
// One that asks what to run with answers with it.
const { config } = process.argv.includes('--asks') ? await configurationInEffect() : { config: undefined }
const server = createServer(socket => {
  socket.on('error', () => {})
  socket.once('data', () => socket.end(config?.log.level ?? String(process.pid)))
})
await once(server.listen(Number(given('--port') ?? 0), '127.0.0.1'), 'listening')
const { port } = server.address() as AddressInfo
sendToFirst({ ready: { apiUrl: `http://127.0.0.1:${port}` } })
process.on('message', async message => {
  if (message !== 'stop') return
  // As one that has much to finish: it says in a folder that it was told, and goes on until it may end.
  const folder = given('--ends-in')
  if (folder !== undefined) {
    writeFileSync(join(folder, `told-${process.pid}`), '')
    await until('it may end', () => existsSync(join(folder, 'may-end')), 60_000)
  }
  server.close()
  process.disconnect?.()
})
