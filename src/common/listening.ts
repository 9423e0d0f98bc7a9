// Opens a listener at an address: whether it can be, the sentence where it can't, and its URL.

import { createServer, type Server } from 'node:net'
import { InputError, messageOf } from './errors.ts'

export type Place = { readonly host: string; readonly port: number }

/** Why nobody else could listen there now; undefined where it is free. Sees those too whose sockets share the port. */
export const listenFault = ({ host, port }: Place): Promise<NodeJS.ErrnoException | undefined> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

/** @param cause what listening there threw */
export const unusablePlace = (
  section: 'server' | 'ops' | 'health',
  { host, port }: Place,
  cause: unknown,
): InputError =>
  new InputError(`can't listen on ${host}:${port} (${section}.host, ${section}.port): ${messageOf(cause)}`, {
    cause,
  })

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
