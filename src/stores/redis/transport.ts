// Detects whether a Redis server uses TLS, by connecting to it both ways. A client with the wrong setting would only see a
// timeout or a closed connection.

import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

type Address = { readonly host: string; readonly port: number }

/** Whether the server replies to a PING without TLS. */
export const answersPlainly = (address: Address, withinMs: number): Promise<boolean> => {
  const socket = connect(address, () => socket.write('PING\r\n'))
  // A simple string or an error, such as NOAUTH.
  return heardFrom(socket, 'data', withinMs, bytes => /^[+-][A-Z]/.test(String(bytes)))
}

/** Whether a TLS handshake succeeds, with any certificate. */
export const answersTls = (address: Address, withinMs: number): Promise<boolean> =>
  heardFrom(connectTls({ ...address, rejectUnauthorized: false }), 'secureConnect', withinMs, () => true)

const heardFrom = (
  socket: Socket,
  event: string,
  withinMs: number,
  isMeant: (bytes: unknown) => boolean,
): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.on('error', () => resolve(false))
  socket.once('close', () => resolve(false))
  socket.setTimeout(withinMs, () => resolve(false))
  socket.once(event, bytes => resolve(isMeant(bytes)))
  return promise.finally(() => socket.destroy())
}
