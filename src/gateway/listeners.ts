// Opens a listener where the configuration says, and names its address.

import type { Server } from 'node:net'
import { type Place, unusablePlace } from '../common/listening.ts'

type ListenAt = Place & { readonly reusePort?: boolean }
type Listener = { readonly server: Server; listen(at: Required<ListenAt>): Promise<unknown> }

/** The address of a listener, such as `http://127.0.0.1:8080`. @throws InputError when it can't be listened there */
export const openListener = async (
  { server, listen }: Listener,
  section: 'server' | 'ops' | 'health',
  { host, port, reusePort = false }: ListenAt,
): Promise<string> => {
  try {
    await listen({ host, port, reusePort })
  } catch (cause) {
    throw unusablePlace(section, { host, port }, cause)
  }
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('a listener has no port')
  const scheme = 'setSecureContext' in server ? 'https' : 'http'
  return `${scheme}://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`
}
