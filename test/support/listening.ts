// Servers of a test on free ports of loopback, and free ports for its processes.

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { Teardown } from './teardown.ts'

/** Has a server listen until the end of the test, which closes its connections too; returns the port. */
export const listenOn = async (
  t: Teardown,
  server: Server | HttpServer,
  host = '127.0.0.1',
): Promise<number> => {
  await once(server.listen(0, host), 'listening')
  t.teardown(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

// Below the ports that a system hands out itself (from 32,768 on Linux, 49,152 elsewhere): between this check and the moment
// when a server of the test binds the port, no other server on port 0 and no client of a test can come by it.
const firstPort = 10_000
const portCount = 22_000

/**
 * A port that nothing listens on and that the system gives to nobody by itself.
 * @param count of ports from it on of which that holds
 */
export const freePort = async (count = 1): Promise<number> => {
  const first = firstPort + randomInt(portCount - count + 1)
  for (let port = first; port < first + count; port++) {
    const server = createServer().listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch {
      return freePort(count)
    }
    server.close()
    await once(server, 'close')
  }
  return first
}
