// Checks of the machine: the version of Node, open files, and where the listeners are. A port may be held by a
// running gateway of this product, which is well.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, isIP } from 'node:net'
import { promisify } from 'node:util'
import { request } from 'undici'
import type { Config } from '../config/schema.ts'
import { apiPrefix } from '../endpoints.ts'
import { messageOf } from '../errors.ts'
import { checkAddresses, checkedLookup, hostOf } from '../outside-address.ts'
import { type Check, fail, ok, warn } from './check.ts'

const leastNode = 26

/** @param version such as `26.1.0` */
export const nodeCheck = (version: string): Check =>
  Number.parseInt(version, 10) >= leastNode
    ? ok('node', `version ${version}`)
    : fail('node', `version ${version}, which is too old`, `Install Node ${leastNode} or newer.`)

// Beside connections: the store, Redis, the provider, the log, and Node itself.
const ownFiles = 64

/** @param limit of open files of a process; infinite where there is none */
export const openFilesCheck = (
  limit: number,
  { server, ops, health }: Pick<Config, 'server' | 'ops' | 'health'>,
): Check => {
  const needed =
    server.maxConnections + ops.maxConnections + (health.port === null ? 0 : health.maxConnections) + ownFiles
  const shown = Number.isFinite(limit) ? String(limit) : 'unlimited'
  return limit >= needed
    ? ok('open files', `ulimit -n is ${shown}; up to ${needed} may be open`)
    : fail(
        'open files',
        `ulimit -n is ${shown}, but up to ${needed} may be open (server.maxConnections is ${server.maxConnections})`,
        `Raise the limit (LimitNOFILE= of the unit, ulimit -n) to ${needed}, or lower server.maxConnections.`,
      )
}

/** The limit of open files of processes that are started from here. */
export const openFilesLimit = async (): Promise<number> => {
  const { stdout } = await promisify(execFile)('sh', ['-c', 'ulimit -n'])
  return stdout.trim() === 'unlimited' ? Number.POSITIVE_INFINITY : Number(stdout)
}

/** Whether the kernel hands connections on that wait for a process when it closes its socket: `1`; `` where it knows no such setting. */
export const migrationSetting = (): string => {
  const file = '/proc/sys/net/ipv4/tcp_migrate_req'
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

export const migrationCheck = (setting: string): Check =>
  setting === '1'
    ? ok('restarts', 'net.ipv4.tcp_migrate_req is 1: connections that wait for a process go to another')
    : warn(
        'restarts',
        'net.ipv4.tcp_migrate_req is not 1: a restart resets connections that wait for a process',
        'Set it to 1 in a file of /etc/sysctl.d (Linux 5.14), or have the proxy in front try again.',
      )

type Place = { readonly host: string; readonly port: number }

/** Whether each listener could be opened, or is held by a running gateway. */
export const portChecks = (config: Config): Promise<Check[]> => {
  const { server, ops, health } = config
  const scheme = server.tls.cert === null ? 'http' : 'https'
  const places: [name: 'server' | 'ops' | 'health', place: Place, url: string][] = [
    ['server', server, `${scheme}://${reachedAt(server)}${apiPrefix}`],
    ['ops', ops, `http://${reachedAt(ops)}/livez`],
  ]
  if (health.port !== null) {
    const place = { host: health.host, port: health.port }
    places.push(['health', place, `http://${reachedAt(place)}/livez`])
  }
  return Promise.all(places.map(([name, place, url]) => portCheck(name, place, url)))
}

const portCheck = async (listener: string, { host, port }: Place, url: string): Promise<Check> => {
  const name = `port of ${listener}`
  const setting = `${listener}.port`
  if (port === 0) return ok(name, `${setting} is 0: any free port`)
  const fault = await listenFault({ host, port })
  if (fault === undefined) return ok(name, `${host}:${port} is free`)
  if (fault.code !== 'EADDRINUSE')
    return fail(
      name,
      `${host}:${port} can't be listened on: ${fault.message}`,
      fault.code === 'EACCES'
        ? `Set ${setting} to a port above 1023, or allow the process to open it (CAP_NET_BIND_SERVICE).`
        : `Set ${listener}.host to an address of this machine.`,
    )
  return (await isOwn(url))
    ? ok(name, `${host}:${port} is held by a running gateway`)
    : fail(
        name,
        `${host}:${port} is held by another program`,
        `Stop that program (ss -ltnp names it), or set ${setting} to a free port.`,
      )
}

const listenFault = ({ host, port }: Place): Promise<NodeJS.ErrnoException | undefined> =>
  new Promise(resolve => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })

const answerWithinMs = 3_000

/** Whether a gateway of this product answers: every answer of the API has the headers of its quota, a probe says live. */
const isOwn = async (url: string): Promise<boolean> => {
  try {
    const { Agent } = await import('undici')
    // Only recognised, at an address that a certificate need not be made out to.
    const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
    const { headers, body } = await request(url, { dispatcher, signal: AbortSignal.timeout(answerWithinMs) })
    const text = await body.text()
    await dispatcher.close()
    return url.endsWith('/livez') ? text === '{"status":"live"}' : 'x-ratelimit-limit' in headers
  } catch {
    return false
  }
}

const reachedAt = ({ host, port }: Place): string => {
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

const wideBits = 8

/** Checks HTTPS and proxies in the configuration. */
export const proxyCheck = ({ server }: Pick<Config, 'server'>): Check => {
  const { trustedProxies, tls, host } = server
  const wide = trustedProxies.find(range => Number(range.split('/')[1] ?? 128) < wideBits)
  if (wide !== undefined)
    return fail(
      'proxy headers',
      `server.trustedProxies has ${wide}: every client there can claim HTTPS and any address`,
      'Name the addresses of your own proxies in server.trustedProxies and nothing wider.',
    )
  if (trustedProxies.length > 0)
    return ok(
      'proxy headers',
      `x-forwarded-proto of ${trustedProxies.join(', ')} is believed; other requests ${tls.cert === null ? 'count as plain HTTP and are 400' : 'need HTTPS'}`,
    )
  return tls.cert === null
    ? ok('proxy headers', `plain HTTP on ${host}, no proxy is trusted`)
    : ok('proxy headers', 'HTTPS straight from the gateway, no proxy is trusted')
}

// Node's own sentences recommend an option of its command line.
const unknownAuthority = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
])

const isOfUnknownAuthority = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && unknownAuthority.has(String(error.code))

/** Sends an unauthenticated request through the proxy: its answer distinguishes HTTPS from plain HTTP. */
export const urlCheck = async (url: string): Promise<Check> => {
  const name = 'public URL'
  const address = `${url.replace(/\/+$/, '')}${apiPrefix}`
  try {
    const target = new URL(address)
    if (isIP(hostOf(target)) !== 0) checkAddresses('it', [hostOf(target)], true)
    const { Agent } = await import('undici')
    const dispatcher = new Agent({ pipelining: 0, connect: { lookup: checkedLookup('its name', true) } })
    const { statusCode, headers, body } = await request(address, {
      dispatcher,
      signal: AbortSignal.timeout(answerWithinMs),
    })
    const text = await body.text()
    const isHttps = url.startsWith('https:')
    if (!('x-ratelimit-limit' in headers))
      return !isHttps && statusCode >= 300 && statusCode < 400
        ? ok(name, `plain HTTP is redirected (${statusCode})`)
        : fail(
            name,
            `${address} answered ${statusCode}, and is no gateway of this product`,
            'Let the proxy pass /api/v1 on to server.host and server.port of the gateway.',
          )
    const isPlain = statusCode === 400 && text.includes('plain HTTP')
    if (isHttps && isPlain)
      return fail(
        name,
        'a request over HTTPS arrives as plain HTTP',
        'Let the proxy set x-forwarded-proto to https, and name its address in server.trustedProxies.',
      )
    if (!isHttps && !isPlain)
      return warn(
        name,
        'a key would be accepted over plain HTTP there',
        'Redirect plain HTTP to HTTPS at the proxy, and name the proxy in server.trustedProxies.',
      )
    return ok(name, isHttps ? 'HTTPS arrives as HTTPS' : 'plain HTTP is refused')
  } catch (error) {
    if (isOfUnknownAuthority(error))
      return fail(
        name,
        `the certificate at ${address} is of an authority that Node.js does not know`,
        'Where the authority is your own, name its certificate: NODE_EXTRA_CA_CERTS=ca.pem before the command.',
      )
    return fail(
      name,
      `no answer at ${address}: ${messageOf(error)}`,
      'Check the name, the certificate and the log of the proxy.',
    )
  }
}
