// One gateway of the product in this process, on a clock of its own and behind a link of its own to Redis: started, stopped in
// order, or killed, which means that nothing of it reaches anybody any more and nobody waits for it.

import { request } from 'undici'
import { variableOf } from '../../src/config/environment.ts'
import { readConfig } from '../../src/config/load.ts'
import { type Gateway, startGateway } from '../../src/gateway/gateway.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { createLog } from '../../src/telemetry/log.ts'
import type { LinkFault, Protocol, Settings } from '../steps.ts'
import { type FleetClock, followIntervals } from './clock.ts'
import { type Link, openLink } from './link.ts'
import type { LaneRedis } from './redis.ts'
import { fleetSettings } from './settings.ts'

export type Place = {
  readonly clock: FleetClock
  readonly protocol: Protocol
  /** A Redis, or the file of the embedded store. */
  readonly store: Pick<LaneRedis, 'settings' | 'server'> | { readonly path: string }
  readonly providerUrl: string
  /** The settings in force, which may change while it runs. */
  readonly settings: () => Settings
}

export type Member = {
  readonly apiUrl: string
  readonly skewMs: number
  readonly link: Link | undefined
  /** The last warnings of its log. */
  readonly log: readonly string[]
  configure(): Promise<string>
  readCatalogue(): Promise<void>
  /** Purges all entries. Returns what it was in the end, undefined when the store did not take it. */
  purge(soft: boolean): Promise<'soft' | 'hard' | undefined>
  ready(): Promise<{ status: number; body: string }>
  /** In order, as on SIGTERM. */
  stop(): Promise<void>
  kill(): void
}

const keptLines = 100

const environmentOf = (settings: Settings): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).map(([path, value]) => [variableOf(path.split('.')), value]))

/** Settings of where it is, and those of the schedule. @param redisPort that of a link to a Redis that is one server */
export const settingsAt = (place: Place, redisPort: number | undefined): Record<string, string> =>
  environmentOf({
    ...fleetSettings,
    'provider.baseUrl': place.providerUrl,
    ...('path' in place.store ? { 'store.path': place.store.path } : place.store.settings),
    ...(redisPort !== undefined && { 'redis.url': `redis://127.0.0.1:${redisPort}` }),
    ...place.settings(),
  })

/** @throws Error when it can't start, as with a store that does not answer */
export const startMember = async (
  place: Place,
  skewMs: number,
  fault: LinkFault | undefined,
): Promise<Member> => {
  const server = 'path' in place.store ? undefined : place.store.server
  const link = server && (await openLink(server.port))
  link?.set(fault)
  const clock = place.clock.clockOf(skewMs)
  const log: string[] = []
  const lines = {
    write: (line: string): void => {
      log.push(line)
      if (log.length > keptLines) log.shift()
    },
  }
  const read = () => readConfig({ files: [], env: settingsAt(place, link?.port) })
  let gateway: Gateway
  try {
    gateway = await followIntervals(clock, () =>
      startGateway(read().config, {
        clock,
        log: createLog('warn', lines),
        lines,
        // The clock of Redis is the machine's; that of the history is the true one here.
        open: async (...given) => {
          const store = await openStore(...given)
          const { time } = store
          return { ...store, time: () => time().then(() => place.clock.now()) }
        },
        source: { read, files: [] },
      }),
    )
  } catch (error) {
    clock.stop()
    link?.close()
    throw error
  }

  // In front of its callers too: a dead process answers nobody, whatever still runs here.
  const front = await openLink(Number(new URL(gateway.apiUrl).port))
  const ops = async (path: string, init: { method?: 'POST'; body?: string } = {}) => {
    const { statusCode, body } = await request(`${gateway.opsUrl}${path}`, {
      ...init,
      headers: { 'content-type': 'application/json' },
    })
    return { status: statusCode, body: await body.text() }
  }
  return {
    apiUrl: `${place.protocol === 'http' ? 'http' : 'https'}://127.0.0.1:${front.port}`,
    skewMs,
    link,
    log,
    configure: () => gateway.reloadConfig(),
    readCatalogue: () => gateway.reloadCatalogue(),
    purge: async soft => {
      const body = JSON.stringify({ scope: 'all', soft })
      const purged = await ops('/cache/purge', { method: 'POST', body })
      return purged.status === 200 ? JSON.parse(purged.body).kind : undefined
    },
    ready: () => ops('/readyz'),
    stop: async () => {
      await gateway.close()
      front.close()
      clock.stop()
      link?.close()
    },
    kill: () => {
      // What it still does reaches neither callers nor Redis nor a clock.
      front.close()
      link?.close()
      clock.stop()
      void gateway.close().catch(() => {})
    },
  }
}
