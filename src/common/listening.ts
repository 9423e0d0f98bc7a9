// Whether an address can be listened on, and the sentence where it can't.

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
  new InputError(
    `${section}.host and ${section}.port are ${host}:${port}, which can't be listened on: ${messageOf(cause)}`,
    { cause },
  )
