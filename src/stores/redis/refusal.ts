// Why Redis can't be used at the start, as one sentence: it runs in another mode, speaks with or without TLS, or does not
// answer.

import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Redis } from 'ioredis'
import { InputError } from '../../common/errors.ts'
import { accountOf, addressesOf, type RedisMode, type RedisOptions } from './place.ts'
import { infoOf, type RedisInfo, redisReason, type ServerOptions } from './server.ts'

/** The server runs in another mode than configured. */
export class OtherMode extends Error {
  readonly found: RedisMode

  constructor(found: RedisMode) {
    super(`the mode is ${found}`)
    this.found = found
  }
}

/** The mode that INFO shows. */
export const modeIn = (info: RedisInfo): RedisMode => {
  // Valkey names it server_mode.
  const found = info.get('redis_mode') ?? info.get('server_mode')
  return found === 'cluster' || found === 'sentinel' ? found : 'single'
}

const kinds: Record<RedisMode, string> = {
  single: 'a single Redis server',
  sentinel: 'a Sentinel',
  cluster: 'a node of a Redis Cluster',
}

/** The error for a Redis that can't be used: another mode than configured, or the reason of the failure. */
export const refusal = async (
  options: RedisOptions,
  serverOptions: ServerOptions,
  cause: unknown,
): Promise<InputError> => {
  const { url, mode = 'single', nodes = [], sentinelMaster } = options
  const { urlName = 'redis.url', modeName = 'redis.mode' } = options
  const { host } = new URL(url)
  const [address] = addressesOf(options)
  // Together, because a server that is frozen answers neither.
  const [found, other] =
    cause instanceof OtherMode
      ? [cause.found]
      : await Promise.all([
          modeAt(options, serverOptions),
          otherTransport(url, address, Math.min(options.connectTimeoutMs, options.commandTimeoutMs * 2)),
        ])
  if (found !== undefined && found !== mode)
    return new InputError(
      `${urlName} names ${host}, which is ${kinds[found]}, but ${modeName} is ${mode}: set ${modeName} to ${found}`,
      { cause },
    )
  if (other) return new InputError(`${urlName} names ${host} with ${other}`, { cause })
  const reason = redisReason(cause, options.commandTimeoutMs)
  if (mode === 'sentinel' && reason.includes('No such master'))
    return new InputError(
      `redis.sentinelMaster is ${sentinelMaster}, but the sentinel at ${host} watches no master of that name`,
      { cause },
    )
  const places =
    nodes.length === 0
      ? `${urlName} names ${host}`
      : `${urlName} and redis.nodes name ${[host, ...nodes].join(', ')}`
  return new InputError(`${places}, which can't be used: ${reason}`, { cause })
}

const modeAt = async (
  options: RedisOptions,
  serverOptions: ServerOptions,
): Promise<RedisMode | undefined> => {
  const [{ host, port } = { host: '', port: 0 }] = addressesOf(options)
  const probe = new Redis({
    ...serverOptions,
    ...accountOf(options.url),
    host,
    port,
    lazyConnect: true,
    retryStrategy: () => null,
  })
  probe.on('error', () => {})
  try {
    await probe.connect()
    return modeIn(infoOf(await probe.info('server')))
  } catch {
    return undefined
  } finally {
    probe.disconnect()
  }
}

// A client with the wrong setting would only see a timeout or a closed connection.
/** The mismatch, when the server uses TLS and the URL does not, or the other way round. */
const otherTransport = async (
  url: string,
  address: Address | undefined,
  withinMs: number,
): Promise<string | undefined> => {
  if (!address) return undefined
  if (url.startsWith('rediss:'))
    return (await answersPlainly(address, withinMs))
      ? 'rediss://, but the server there speaks without TLS; allowed: redis:// for it, or its port with TLS'
      : undefined
  return (await answersTls(address, withinMs))
    ? 'redis://, but the server there speaks with TLS; allowed: rediss:// for it, or its port without TLS'
    : undefined
}

type Address = { readonly host: string; readonly port: number }

/** Whether the server replies to a PING without TLS. */
const answersPlainly = (address: Address, withinMs: number): Promise<boolean> => {
  const socket = connect(address, () => socket.write('PING\r\n'))
  // A simple string or an error, such as NOAUTH.
  return heardFrom(socket, 'data', withinMs, bytes => /^[+-][A-Z]/.test(String(bytes)))
}

/** Whether a TLS handshake succeeds, with any certificate. */
const answersTls = (address: Address, withinMs: number): Promise<boolean> =>
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
