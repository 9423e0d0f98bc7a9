// What the machine has for a gateway: open files, ports (one may be held by a running gateway of this product, which is
// well), and whether the kernel hands waiting connections on.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import { Agent, request } from 'undici'
import { clockToleranceMs } from '../../common/clock.ts'
import { apiPrefix } from '../../common/endpoints.ts'
import type { Config } from '../../config/schema.ts'
import { type Finding, fail, ok, warn } from './check.ts'

// Beside connections: the store, Redis, the provider, the log, and Node itself.
const ownFiles = 64

/** @param limit of open files of a process; infinite where there is none */
export const openFilesFinding = (
  limit: number,
  { server, ops, health }: Pick<Config, 'server' | 'ops' | 'health'>,
): Finding => {
  const needed =
    server.maxConnections + ops.maxConnections + (health.port === null ? 0 : health.maxConnections) + ownFiles
  const shown = Number.isFinite(limit) ? String(limit) : 'unlimited'
  return limit >= needed
    ? ok(`ulimit -n is ${shown}; up to ${needed} may be open`)
    : fail(
        `ulimit -n is ${shown}, but up to ${needed} may be open (server.maxConnections is ${server.maxConnections})`,
        `Raise the limit (LimitNOFILE= of the unit, ulimit -n) to ${needed}, or lower server.maxConnections.`,
      )
}

export const openFilesLimit = async (): Promise<number> => {
  const { stdout } = await promisify(execFile)('sh', ['-c', 'ulimit -n'])
  return stdout.trim() === 'unlimited' ? Number.POSITIVE_INFINITY : Number(stdout)
}

/** Whether the kernel hands connections on that wait for a process when it closes its socket: `1`; `` where it knows no such setting. */
export const migrationSetting = (): string => {
  const file = '/proc/sys/net/ipv4/tcp_migrate_req'
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

export const migrationFinding = (setting: string): Finding =>
  setting === '1'
    ? ok('net.ipv4.tcp_migrate_req is 1: connections that wait for a process go to another')
    : warn(
        'net.ipv4.tcp_migrate_req is not 1: a restart resets connections that wait for a process',
        'Set it to 1 in a file of /etc/sysctl.d (Linux 5.14), or have the proxy in front try again.',
      )

type Place = { readonly host: string; readonly port: number }

export const portFindings = (config: Config): Promise<Finding[]> => {
  const { server, ops, health } = config
  const scheme = server.tls.cert === null ? 'http' : 'https'
  const { host, port } = health
  const ofProbes = (name: string, place: Place) =>
    portFinding(name, place, `http://${reachedAt(place)}/livez`)
  return Promise.all([
    portFinding('server', server, `${scheme}://${reachedAt(server)}${apiPrefix}`),
    ofProbes('ops', ops),
    ...(port === null ? [] : [ofProbes('health', { host, port })]),
  ])
}

const portFinding = async (listener: string, { host, port }: Place, url: string): Promise<Finding> => {
  const setting = `${listener}.port`
  if (port === 0) return ok(`${setting} is 0: any free port`)
  const named = `${setting} ${host}:${port}`
  const fault = await listenFault({ host, port })
  if (fault === undefined) return ok(`${named} is free`)
  if (fault.code !== 'EADDRINUSE')
    return fail(
      `${named} can't be listened on: ${fault.message}`,
      fault.code === 'EACCES'
        ? `Set ${setting} to a port above 1023, or allow the process to open it (CAP_NET_BIND_SERVICE).`
        : `Set ${listener}.host to an address of this machine.`,
    )
  return (await isOwn(url))
    ? ok(`${named} is held by a running gateway`)
    : fail(
        `${named} is held by another program`,
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

const noticedMs = 1_000

/** @param aheadMs by how much the other clock is ahead of this machine's */
export const clockFinding = (whose: string, aheadMs: number, noticed = noticedMs): Finding => {
  const away = Math.abs(aheadMs)
  const detail = `that of ${whose} is ${(away / 1000).toFixed(1)} s ${aheadMs < 0 ? 'behind' : 'ahead'}`
  const fix = 'Keep both clocks right with NTP (chrony, systemd-timesyncd).'
  if (away >= clockToleranceMs) return fail(detail, fix)
  return away >= noticed ? warn(detail, fix) : ok(`within ${noticed / 1000} s of ${whose}`)
}
