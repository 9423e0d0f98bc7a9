// Checks of the machine: open files, ports, clocks, and whether the kernel hands waiting connections on. A port of a running
// Abohawa is fine.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { Agent, request } from 'undici'
import { clockToleranceMs } from '../../common/clock.ts'
import { apiPrefix } from '../../common/endpoints.ts'
import { messageOf } from '../../common/errors.ts'
import { listenFault, type Place } from '../../common/listening.ts'
import { checkShared, forProcess } from '../../config/processes.ts'
import type { Config } from '../../config/schema.ts'
import { type Finding, fail, ok, skip, warn } from './check.ts'

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
        'Set it to 1 in a file of /etc/sysctl.d (Linux 5.14), or let the proxy in front retry.',
      )

/** @param processes that share server.port, each with its own other ports @throws InputError when they can't run side by side */
export const portFindings = async (config: Config, processes: number): Promise<Finding[]> => {
  if (processes > 1) checkShared(config, processes)
  const { server } = config
  const { answerWithinMs } = config.doctor
  const scheme = server.tls.cert === null ? 'http' : 'https'
  const probed = (section: 'ops' | 'health', { host, port }: Listener): Promise<Use>[] =>
    port === null
      ? []
      : [useOf(section, { host, port }, `http://${reachedAt({ host, port })}/livez`, answerWithinMs)]
  const ofFirst = [...probed('ops', config.ops), ...probed('health', config.health)]
  const ofOthers = Array.from({ length: processes - 1 }, (_, i) => forProcess(config, i + 2)).flatMap(
    ({ ops, health }) => [...probed('ops', ops), ...probed('health', health)],
  )
  const api = await useOf('server', server, `${scheme}://${reachedAt(server)}${apiPrefix}`, answerWithinMs)
  const [first, others] = await Promise.all([Promise.all(ofFirst), Promise.all(ofOthers)])
  // A gateway with this configuration would also hold ops.port.
  const isStranger = api.is === 'gateway' && !server.reusePort && first[0]?.is === 'free'
  return [
    isStranger
      ? fail(
          `server.port ${server.host}:${server.port} is held by a gateway that has another ops.port`,
          'Stop that gateway, or set server.port to a free port.',
        )
      : api.finding,
    ...first.map(({ finding }) => finding),
    ...others.flatMap(({ finding }) => (finding.status === 'ok' ? [] : [finding])),
  ]
}

type Listener = { readonly host: string; readonly port: number | null }

/** Whether a port is free or held by a gateway; neither for another program or port 0. */
type Use = { readonly finding: Finding; readonly is?: 'free' | 'gateway' }

const useOf = async (
  section: string,
  { host, port }: Place,
  url: string,
  answerWithinMs: number,
): Promise<Use> => {
  const setting = `${section}.port`
  if (port === 0) return { finding: ok(`${setting} is 0: any free port`) }
  const named = `${setting} ${host}:${port}`
  const fault = await listenFault({ host, port })
  if (fault === undefined) return { finding: ok(`${named} is free`), is: 'free' }
  if (fault.code !== 'EADDRINUSE')
    return {
      finding: fail(
        `${named} can't be listened on: ${messageOf(fault)}`,
        fault.code === 'EACCES'
          ? `Set ${setting} to a port above 1023, or allow the process to open it (CAP_NET_BIND_SERVICE).`
          : `Set ${section}.host to an address of this machine.`,
      ),
    }
  return (await isOwn(url, answerWithinMs))
    ? { finding: ok(`${named} is held by a running gateway`), is: 'gateway' }
    : {
        finding: fail(
          `${named} is held by another program`,
          `Stop that program (ss -ltnp names it), or set ${setting} to a free port.`,
        ),
      }
}

/** Whether a gateway of this product answers: every answer of the API has the headers of its quota, a probe says live. */
const isOwn = async (url: string, answerWithinMs: number): Promise<boolean> => {
  // Only to recognise a gateway, so its certificate may name another address.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  try {
    const { headers, body } = await request(url, { dispatcher, signal: AbortSignal.timeout(answerWithinMs) })
    const text = await body.text()
    return url.endsWith('/livez') ? text === '{"status":"live"}' : 'x-ratelimit-limit' in headers
  } catch {
    return false
  } finally {
    await dispatcher.destroy()
  }
}

const reachedAt = ({ host, port }: Place): string => {
  const reached = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

/** By how many ms another clock is ahead of this machine's. Where between request and answer it was read is not known. */
export type Ahead = { readonly least: number; readonly most: number }

/** @param read the first and the last instant that the other clock may have had @param before, after the request, by this machine */
export const aheadOf = (
  [first, last]: readonly [number, number],
  [before, after]: readonly [number, number],
): Ahead => ({ least: first - after, most: last - before })

const noticedMs = 1_000
const inSeconds = (ms: number): string => (Math.ceil(ms / 100) / 10).toFixed(1)

export const clockFinding = (whose: string, { least, most }: Ahead, noticed = noticedMs): Finding => {
  const away = Math.max(0, least, -most)
  const detail = `the clock of ${whose} is at least ${(away / 1000).toFixed(1)} s ${most < 0 ? 'behind' : 'ahead'}`
  const fix = 'Keep both clocks right with NTP (chrony, systemd-timesyncd).'
  if (away >= clockToleranceMs) return fail(detail, fix)
  if (away >= noticed) return warn(detail, fix)
  const within = `within ${inSeconds(Math.max(most, -least))} s of ${whose}`
  return Math.max(most, -least) < 2 * noticed
    ? ok(within)
    : skip(`only known to be ${within}: it answered late`)
}
