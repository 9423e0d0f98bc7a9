// One gateway of a history, on its own clock and behind its own link to Redis: started, stopped in order, or killed. In this
// process the latter means that nothing of it reaches anybody any more and nobody waits for it; one in a separate process is
// really killed, and can stand still.

import { request } from 'undici'
import { variableOf } from '../../src/config/environment.ts'
import { fleetConstants, fleetSettings } from '../settings.ts'
import type { LinkFault, Settings } from '../steps.ts'
import { startGatewayProcess } from './gateway-process.ts'
import { type Link, openLink } from './link.ts'
import { runGateway } from './running.ts'
import type { Running, Site } from './site.ts'

export type Member = Running & {
  readonly skewMs: number
  readonly link: Link | undefined
  /** Purges all entries. Returns what it was in the end, undefined when the store did not take it. */
  purge(hard: boolean): Promise<'soft' | 'hard' | undefined>
  ready(): Promise<{ status: number; body: string }>
}

type Env = Readonly<Record<string, string>>

const environmentOf = (settings: Settings): Env =>
  Object.fromEntries(Object.entries(settings).map(([path, value]) => [variableOf(path.split('.')), value]))

const fallbacksOf = (baseUrl: string): string =>
  JSON.stringify([{ baseUrl, budget: { perMinute: null, perHour: null, perDay: null } }])

/** Settings of where it is, and those of the schedule. @param redisPort that of a link to a Redis that is one server */
export const settingsAt = (site: Omit<Site, 'logged'>, redisPort: number | undefined): Env => ({
  ...fleetConstants,
  ...site.constants,
  ...environmentOf({
    ...fleetSettings,
    'provider.baseUrl': site.providerUrl,
    ...(site.fallbackUrl !== undefined && { 'provider.fallbacks': fallbacksOf(site.fallbackUrl) }),
    ...('path' in site.store ? { 'store.path': site.store.path } : site.store.settings),
    ...(redisPort !== undefined && { 'redis.url': `redis://127.0.0.1:${redisPort}` }),
    ...site.settings(),
  }),
})

/** @throws Error when it can't start, as with a store that does not answer */
export const startMember = async (
  site: Site,
  skewMs: number,
  fault: LinkFault | undefined,
): Promise<Member> => {
  const server = 'path' in site.store ? undefined : site.store.server
  const link = server && (await openLink(server.port))
  link?.set(fault)
  const env = () => settingsAt(site, link?.port)
  const starting = site.processes
    ? startGatewayProcess(site, site.processes, skewMs, env)
    : startHere(site, skewMs, env)
  const running = await starting.catch(error => {
    link?.close()
    throw error
  })
  const ops = async (path: string, init: { method?: 'POST'; body?: string } = {}) => {
    const headers = { 'content-type': 'application/json' }
    const { statusCode, body } = await request(`${running.opsUrl}${path}`, { ...init, headers })
    return { status: statusCode, body: await body.text() }
  }
  return {
    ...running,
    apiUrl: `${site.protocol === 'http' ? 'http' : 'https'}://127.0.0.1:${new URL(running.apiUrl).port}`,
    skewMs,
    link,
    purge: async hard => {
      const body = JSON.stringify({ scope: 'all', hard })
      const purged = await ops('/cache/purge', { method: 'POST', body })
      return purged.status === 200 ? JSON.parse(purged.body).kind : undefined
    },
    ready: () => ops('/readyz'),
    stop: async () => {
      await running.stop()
      link?.close()
    },
    kill: () => {
      link?.close()
      return running.kill()
    },
  }
}

const startHere = async (
  { clock: fleet, logged }: Site,
  skewMs: number,
  env: () => Env,
): Promise<Running> => {
  const clock = fleet.clockOf(skewMs)
  const gateway = await runGateway({ clock, trueNow: fleet.now, env, logged }).catch(error => {
    clock.stop()
    throw error
  })
  // In front of its callers too: a dead process answers nobody, whatever still runs here.
  const front = await openLink(Number(new URL(gateway.apiUrl).port))
  return {
    apiUrl: `http://127.0.0.1:${front.port}`,
    opsUrl: gateway.opsUrl,
    configure: gateway.reloadConfig,
    readCatalogue: gateway.reloadCatalogue,
    stop: async () => {
      await gateway.close()
      front.close()
      clock.stop()
    },
    kill: async () => {
      // What it still does reaches neither callers nor Redis nor a clock.
      front.close()
      clock.stop()
      void gateway.close().catch(() => {})
    },
  }
}
