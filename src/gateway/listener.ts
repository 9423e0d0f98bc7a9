// Opens a listener where it is to listen, and says where it can be reached. The rules for hosts and ports are in the configuration.

import type { Server } from 'node:net'
import { InputError, messageOf } from '../common/errors.ts'

type Place = { readonly host: string; readonly port: number; readonly reusePort?: boolean }

type Listener = {
  readonly server: Server
  listen(at: Required<Place>): Promise<unknown>
}

/**
 * @param section the settings that name the place
 * @returns the address, such as `http://127.0.0.1:8080`
 * @throws InputError when it can't be listened there
 */
export const openListener = async (
  { server, listen }: Listener,
  section: 'server' | 'ops' | 'health',
  { host, port, reusePort = false }: Place,
): Promise<string> => {
  try {
    await listen({ host, port, reusePort })
  } catch (cause) {
    throw new InputError(
      `${section}.host and ${section}.port are ${host}:${port}, which can't be listened on: ${messageOf(cause)}`,
      { cause },
    )
  }
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener has no port')
  const scheme = 'setSecureContext' in server ? 'https' : 'http'
  return `${scheme}://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`
}
