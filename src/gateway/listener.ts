// Opens a listener where it is to listen, and says where it can be reached: on a socket that this process inherited, a Unix socket, or a host and a port. The
// rules for settings are in the configuration; an inherited socket is checked here by the same ones.

import { once } from 'node:events'
import { fstatSync, readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import { isLoopback } from '../config/rules.ts'
import type { Config } from '../config/schema.ts'
import { InputError, messageOf } from '../errors.ts'
import { listenOnSocket } from '../unix-socket.ts'

type Section = 'server' | 'ops' | 'health'

/** Where to listen, as Node takes it. */
type At =
  | { readonly host: string; readonly port: number; readonly reusePort: boolean }
  | { readonly path: string }
  | { readonly fd: number }

type Listener = {
  readonly server: Server
  listen(at: At): Promise<unknown>
}

type Place = {
  readonly host: string
  readonly port: number
  readonly reusePort?: boolean
  /** The path of a Unix socket, in place of host and port. */
  readonly socket?: string | null
  readonly socketMode?: string
}

/**
 * @param inherited a file descriptor, in place of all that is set
 * @returns the address, such as `http://127.0.0.1:8080` or `unix:/run/abohawa/api.sock`
 * @throws InputError when it can't be listened there
 */
export const openListener = async (
  listener: Listener,
  section: Section,
  place: Place,
  config: Pick<Config, 'server' | 'ops'>,
  inherited?: number,
): Promise<string> => {
  const { host, port, reusePort = false, socket = null, socketMode = '' } = place
  if (inherited !== undefined) {
    await attempt(`${nounOf[section]} inherits file descriptor ${inherited}`, () =>
      listener.listen({ fd: inherited }),
    )
    const address = addressOf(listener.server, () => pathOf(inherited))
    const fault = inheritedFault(section, listener.server, config)
    if (fault === undefined) return address
    // In the same turn, so that no connection is accepted.
    listener.server.close()
    throw new InputError(`${nounOf[section]} inherits ${address}, ${fault}`)
  }
  if (socket !== null) {
    await attempt(`${section}.socket is ${socket}`, () =>
      listenOnSocket(() => listener.listen({ path: socket }), socket, socketMode),
    )
    return addressOf(listener.server, () => socket)
  }
  await attempt(`${section}.host and ${section}.port are ${host}:${port}`, () =>
    listener.listen({ host, port, reusePort }),
  )
  return addressOf(listener.server, () => '')
}

/** Opens a listener on a Unix socket of this process alone, and returns its path. */
export const openOnSocket = async ({ server }: Pick<Listener, 'server'>, path: string): Promise<string> => {
  // Exclusive: the sockets of a cluster's workers would otherwise be one.
  await once(server.listen({ path, exclusive: true }), 'listening')
  return path
}

const nounOf = {
  server: 'the API',
  ops: 'the ops listener',
  health: 'the health listener',
} as const satisfies Record<Section, string>

const attempt = async (where: string, open: () => Promise<unknown>): Promise<void> => {
  try {
    await open()
  } catch (cause) {
    throw new InputError(`${where}, which can't be listened on: ${messageOf(cause)}`, { cause })
  }
}

const addressOf = (server: Server, path: () => string): string => {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') return `unix:${path()}`
  const { address, family, port } = bound
  const scheme = 'setSecureContext' in server ? 'https' : 'http'
  return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

const inheritedFault = (
  section: Section,
  server: Server,
  { server: { tls, trustedProxies }, ops: { token } }: Pick<Config, 'server' | 'ops'>,
): string | undefined => {
  const bound = server.address()
  if (bound === null || typeof bound === 'string') {
    if (section !== 'server') return undefined
    if (tls.cert !== null) return 'a Unix socket, where plain HTTP is spoken, but server.tls is set'
    return trustedProxies.length === 0 || trustedProxies.includes('unix')
      ? undefined
      : 'a Unix socket, but server.trustedProxies does not have unix, so that every request would count as plain HTTP'
  }
  if (isLoopback(bound.address)) return undefined
  if (section === 'server' && tls.cert === null && trustedProxies.length === 0)
    return 'where plain HTTP is not allowed: set server.tls.cert and server.tls.key, or server.trustedProxies'
  return section === 'ops' && token === null
    ? 'where a token is required: set ops.token, best by ABOHAWA_OPS__TOKEN'
    : undefined
}

/** The path of an inherited Unix socket, which Node does not know; Linux lists it. */
const pathOf = (descriptor: number): string => {
  const { ino } = fstatSync(descriptor)
  try {
    const lines = readFileSync('/proc/net/unix', 'utf8').split('\n')
    const fields = lines.map(line => line.split(/\s+/)).find(line => line[6] === String(ino))
    return fields?.[7] ?? `fd:${descriptor}`
  } catch {
    return `fd:${descriptor}`
  }
}
