// Whether a listener can be opened at an address, and the sentence where it can't.

import { createServer } from 'node:net'
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
