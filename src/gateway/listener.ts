// Opens a listener at the address of its settings, or on a Unix socket, and says where it can be reached.

import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { InputError, messageOf } from '../errors.ts'

type ListenAt = { readonly host: string; readonly port: number; readonly reusePort?: boolean }

type Listener = {
  readonly server: Server
  listen(at: ListenAt): Promise<unknown>
}

/** Opens a listener, and returns its address. @throws InputError when it can't be opened */
export const openListener = async (
  app: Listener,
  section: 'server' | 'ops' | 'status',
  { host, port, reusePort = false }: ListenAt,
): Promise<string> => {
  try {
    await app.listen({ host, port, reusePort })
  } catch (cause) {
    throw new InputError(
      `${section}.host and ${section}.port are ${host}:${port}, which can't be listened on: ${messageOf(cause)}`,
      { cause },
    )
  }
  const { address, family, port: bound } = app.server.address() as AddressInfo
  const scheme = 'setSecureContext' in app.server ? 'https' : 'http'
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${bound}`
}

/** Opens a listener on a Unix socket of this process alone, and returns its path. */
export const openOnSocket = async ({ server }: Pick<Listener, 'server'>, path: string): Promise<string> => {
  // Exclusive: the sockets of a cluster's workers would otherwise be one.
  await once(server.listen({ path, exclusive: true }), 'listening')
  return path
}
