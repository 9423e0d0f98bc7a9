// The target of a replay: an address of HTTP, HTTPS or a Unix socket, and how to connect to it. A target that is neither
// this machine nor in a private network is refused unless the caller allows it: a mistaken line must not flood a server of
// others. A name is resolved once, and no redirect is followed.

import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, isIP, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { InputError, messageOf } from 'abohawa/common/errors.ts'
import { checkAddresses, hostOf, isLoopback, lookupOf } from 'abohawa/common/outside-address.ts'
import { quoted, quotedPath } from 'abohawa/common/outside-text.ts'
import { maxFileBytes, readTextFileSync } from 'abohawa/common/regular-file.ts'
import { codeOf, generatorErrorOf } from './generator-errors.ts'

/** Plain values, so that a worker receives it as it is. */
export type Target = {
  /** As it is shown: without a user or a password. */
  readonly name: string
  readonly isTls: boolean
  readonly host: string
  readonly port: number
  /** The resolved address of all connections; empty for a Unix socket. */
  readonly addresses: readonly string[]
  readonly socketPath: string | undefined
  /** The value of `host` or `:authority`. */
  readonly authority: string
  /** Stands before every path; empty for most. */
  readonly base: string
  /** Certificates to trust beside those of Node, in PEM. */
  readonly ca: string | undefined
  readonly insecure: boolean
}

export type TargetOptions = {
  readonly ca?: string | undefined
  /** Takes any certificate; only of this machine. */
  readonly insecure?: boolean | undefined
  readonly allowRemote?: boolean | undefined
}

const example = 'http://127.0.0.1:8080, https://localhost:8443 or unix:/run/abohawa.sock'

export const addressIn = (given: string): URL => {
  const url = given === 'unix:' ? null : URL.parse(given)
  if (
    !url ||
    !/^(https?|unix):$/.test(url.protocol) ||
    (url.protocol !== 'unix:' && url.search + url.hash !== '')
  )
    throw new InputError(`the target is ${quoted(given)}; allowed: ${example}`)
  if (url.username !== '' || url.password !== '')
    throw new InputError(
      'the target has a user or a password; allowed: an address, and keys by --keys or --key',
    )
  if (url.protocol !== 'unix:' && /\/api(\/v\d+)?\/*$/.test(url.pathname))
    throw new InputError(
      `the target is ${quoted(given)}; allowed: without /api/v1, which the paths of the traffic begin with`,
    )
  return url
}

/** @throws InputError with a sentence for what is no target, and for one that is not allowed */
export const targetOf = async (
  given: string,
  { ca, insecure = false, allowRemote = false }: TargetOptions = {},
): Promise<Target> => {
  const url = addressIn(given)
  const trusted = ca === undefined ? undefined : certificatesIn(ca)
  const near = { host: 'localhost', port: 0, addresses: [], authority: 'localhost', base: '' }
  if (url.protocol === 'unix:')
    return { ...near, name: given, isTls: false, socketPath: given.slice(5), ca: trusted, insecure: false }
  const host = hostOf(url)
  const isTls = url.protocol === 'https:'
  const addresses = await addressesOf(host)
  checkAddresses(`the target ${quoted(url.host)}`, addresses, allowRemote)
  if (insecure && !addresses.every(isLoopback))
    throw new InputError(
      '--insecure is for targets on this machine; allowed for others: --ca with their certificates',
    )
  const base = url.pathname.replace(/\/+$/, '')
  return {
    name: `${url.protocol}//${url.host}${base}`,
    isTls,
    host,
    port: Number(url.port) || (isTls ? 443 : 80),
    addresses,
    socketPath: undefined,
    authority: url.host,
    base,
    ca: trusted,
    insecure,
  }
}

const certificatesIn = (file: string): string => {
  try {
    const text = readTextFileSync(file, maxFileBytes.pem)
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  } catch (cause) {
    throw new InputError(`--ca is ${quotedPath(file)}, which can't be read: ${messageOf(cause)}`, { cause })
  }
  throw new InputError(`--ca is ${quotedPath(file)}, which has no certificate; allowed: a file in PEM`)
}

const addressesOf = async (host: string): Promise<string[]> => {
  if (isIP(host) !== 0) return [host]
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch (cause) {
    throw new InputError(`the name ${quoted(host)} of the target is not known: ${messageOf(cause)}`, {
      cause,
    })
  }
}

// One for all connections of a thread: what is read is worked on before the next read begins.
const received = Buffer.allocUnsafeSlow(262_144)

/** A connection that is on its way. @param protocol over TLS, by ALPN */
export const socketTo = (target: Target, protocol: 'h2' | 'http/1.1', onread?: OnReadOpts): Socket => {
  const { isTls, host, port, addresses, socketPath, ca, insecure } = target
  if (socketPath !== undefined) return connect({ path: socketPath, onread })
  const to = { host, port, lookup: lookupOf(addresses) }
  if (!isTls) return connect({ ...to, onread })
  return connectTls({
    ...to,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca: [ca] }),
    rejectUnauthorized: !insecure,
    ALPNProtocols: [protocol],
  })
}

/** A connection to the target. @param onData called with each part as it is received; its memory is used again after the call */
export const connectTo = (target: Target, onData: (part: Buffer) => void): Socket => {
  if (target.isTls) return socketTo(target, 'http/1.1').on('data', onData)
  const callback = (bytes: number): boolean => {
    onData(received.subarray(0, bytes))
    return true
  }
  return socketTo(target, 'http/1.1', { buffer: received, callback })
}

const connectWithinMs = 5_000

/**
 * Connects once and disconnects, so that a target which is not there is one sentence and not a failure of each request.
 * @throws InputError
 */
export const checkReachable = async (target: Target, http: '1.1' | '2'): Promise<void> => {
  const within = { signal: AbortSignal.timeout(connectWithinMs) }
  const socket = socketTo(target, http === '2' ? 'h2' : 'http/1.1')
  try {
    await once(socket, target.isTls ? 'secureConnect' : 'connect', within)
    if (http === '1.1') return
    // Without TLS there is nothing else to go by than that the other end begins with its settings.
    const isOther = 'alpnProtocol' in socket && socket.alpnProtocol !== 'h2'
    const session = isOther ? undefined : connectHttp2('http://localhost', { createConnection: () => socket })
    const begun = session && once(session, 'remoteSettings', within).finally(() => session.destroy())
    if (!(await begun?.catch(() => undefined)))
      throw new InputError(`the target ${target.name} has no HTTP/2; allowed: --http 1.1`)
  } catch (cause) {
    if (cause instanceof InputError) throw cause
    throw new InputError(`the target ${target.name} can't be reached: ${connectFault(cause)}`, { cause })
  } finally {
    socket.destroy()
  }
}

const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Why there is no connection, in words for what is often the reason. */
export const connectFault = (cause: unknown): string => {
  if (!(cause instanceof Error)) return messageOf(cause)
  if (cause.name === 'AbortError') return `no connection within ${connectWithinMs / 1000} s`
  const code = codeOf(cause)
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return 'it does not speak TLS; allowed for it: http://'
  if (untrusted.has(code)) return 'its certificate is not trusted; --ca FILE names certificates that are'
  return generatorErrorOf(cause) ?? messageOf(cause)
}
