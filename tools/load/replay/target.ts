// The target of a replay: an HTTP or HTTPS address or a Unix socket, and how to connect to it. A target outside this machine and
// private networks must be allowed, so that a mistake does not flood somebody else's server. A name is resolved once.

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
  /** For people: scheme, host and base path. */
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
  /** Accepts any certificate; only for this machine. */
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
    throw new InputError(`the target must be an address such as ${example}, got ${quoted(given)}`)
  if (url.username !== '' || url.password !== '')
    throw new InputError('the target must not have a user or password; give keys with --keys or --key')
  if (url.protocol !== 'unix:' && /\/api(\/v\d+)?\/*$/.test(url.pathname))
    throw new InputError(
      `the target must not end in /api/v1, because the paths of the traffic start with it, got ${quoted(given)}`,
    )
  return url
}

/** @throws InputError for an invalid target, and for one that is not allowed */
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
      '--insecure works only for targets on this machine; for others give their certificates with --ca',
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
  throw new InputError(`--ca must be a PEM file with certificates, got ${quotedPath(file)}`)
}

const addressesOf = async (host: string): Promise<string[]> => {
  if (isIP(host) !== 0) return [host]
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch (cause) {
    throw new InputError(`the host name ${quoted(host)} can't be resolved: ${messageOf(cause)}`, {
      cause,
    })
  }
}

// Shared by all connections of a thread, because each read is handled before the next starts.
const received = Buffer.allocUnsafeSlow(262_144)

/** Starts a connection. @param protocol for ALPN over TLS */
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

/** Starts a connection for HTTP/1.1. @param onData called with each chunk, whose memory is reused after the call */
export const connectTo = (target: Target, onData: (part: Buffer) => void): Socket => {
  if (target.isTls) return socketTo(target, 'http/1.1').on('data', onData)
  const callback = (bytes: number): boolean => {
    onData(received.subarray(0, bytes))
    return true
  }
  return socketTo(target, 'http/1.1', { buffer: received, callback })
}

const connectWithinMs = 5_000

/** Connects once and disconnects, so that a missing target is one error instead of many failed requests. @throws InputError */
export const checkReachable = async (target: Target, http: '1.1' | '2'): Promise<void> => {
  const within = { signal: AbortSignal.timeout(connectWithinMs) }
  const socket = socketTo(target, http === '2' ? 'h2' : 'http/1.1')
  try {
    await once(socket, target.isTls ? 'secureConnect' : 'connect', within)
    if (http === '1.1') return
    // Without TLS, HTTP/2 shows only by the settings that the server sends first.
    const isOther = 'alpnProtocol' in socket && socket.alpnProtocol !== 'h2'
    const session = isOther ? undefined : connectHttp2('http://localhost', { createConnection: () => socket })
    const begun = session && once(session, 'remoteSettings', within).finally(() => session.destroy())
    if (!(await begun?.catch(() => undefined)))
      throw new InputError(`the target ${target.name} does not speak HTTP/2; use --http 1.1`)
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

/** Why there is no connection, as a sentence. */
export const connectFault = (cause: unknown): string => {
  if (!(cause instanceof Error)) return messageOf(cause)
  if (cause.name === 'AbortError') return `no connection within ${connectWithinMs / 1000} s`
  const code = codeOf(cause)
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return 'it does not speak TLS; use http:// instead'
  if (untrusted.has(code)) return 'its certificate is not trusted; trust it with --ca FILE'
  return generatorErrorOf(cause) ?? messageOf(cause)
}
