// Servers of a test on free ports of loopback.

import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
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
