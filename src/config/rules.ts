// Rules between settings. Each names the settings that it reads, so that the error names a place.

import { BlockList, isIP } from 'node:net'
import { hourMs } from '../common/calendar.ts'
import { longestBurstSeconds } from '../stores/token-bucket.ts'
import type { Config } from './schema.ts'
import { printDuration } from './units.ts'
import { upstreamNamesIn } from './upstreams.ts'

/** A rule between settings: the end of a sentence that starts with the place of a setting, or nothing. */
export type Rule = { reads: readonly string[]; fault(config: Config): string | readonly string[] | false }

// Commands start without the library of addresses.
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether a host reaches only this machine. */
const isLoopback = (host: string): boolean =>
  isIP(host) ? loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4') : host.toLowerCase() === 'localhost'

const addressOf = (host: string): string => (host.toLowerCase() === 'localhost' ? '127.0.0.1' : host)

const overlap = (one: string, other: string): boolean =>
  addressOf(one) === addressOf(other) ||
  [one, other].includes('::') ||
  ([one, other].includes('0.0.0.0') && isIP(addressOf(one)) === isIP(addressOf(other)))

const LONGEST_SERVED = 48 * hourMs

/** Fresh and stale time together have a bound; the longer of the two settings for fresh time counts. */
const servedAtMost = (
  name: 'freshFor' | 'freshForAtMost',
  ifLonger: (cache: Config['cache']) => number | false,
): Rule => ({
  reads: [`cache.${name}`, 'cache.staleFor'],
  fault: ({ cache }) => {
    const longest = ifLonger(cache)
    return (
      longest !== false &&
      longest + cache.staleForMs > LONGEST_SERVED &&
      `cache.${name} and cache.staleFor are ${printDuration(longest)} and ${printDuration(cache.staleForMs)}, ` +
        'but together must be at most 48h'
    )
  },
})

/** Any origin leaves nothing to list. */
const anyOriginAlone: Rule = {
  reads: ['server.cors.origins'],
  fault: ({ server: { cors } }) =>
    cors.origins.includes('*') &&
    cors.origins.length > 1 &&
    "server.cors.origins can't combine * with other origins",
}

type Listener = 'server' | 'ops' | 'health'

/** Two listeners need a port each where their hosts overlap. */
const differentPorts = (later: Exclude<Listener, 'server'>, earlier: Listener): Rule => ({
  reads: [earlier, later].flatMap(listener => [`${listener}.host`, `${listener}.port`]),
  fault: config => {
    const { host, port } = config[later]
    return (
      port === config[earlier].port &&
      port !== null &&
      port !== 0 &&
      overlap(config[earlier].host, host) &&
      `${later}.port must differ from ${earlier}.port on the same host (0 picks a free port), got ${port}`
    )
  },
})

/** What is wrong with the limits of a tier; the first fault of any. */
const ratesOfTiers: Rule = {
  reads: ['quota.rates', 'quota.tiers'],
  fault: ({ quota: { rates, tiers } }) => {
    for (const [tier, { perSecond, burst }] of Object.entries(rates)) {
      const path = `quota.rates.${tier}`
      if (!Object.hasOwn(tiers, tier))
        return `${path} must be of one of the tiers ${Object.keys(tiers).join(', ')}`
      if (burst === null) continue
      if (perSecond === null)
        return `${path}.burst is set, but ${path}.perSecond is not: set both of them or no burst`
      if (burst > perSecond * longestBurstSeconds)
        return `${path}.burst must be at most ${longestBurstSeconds} times ${path}.perSecond (${perSecond}), got ${burst}`
    }
    return false
  },
}

/** A rule about Redis: it reads where Redis is, how it is run, and one setting more. */
const redisRule = (
  setting: keyof Config['redis'],
  fault: (redis: Config['redis']) => string | false | undefined,
): Rule => ({
  reads: [...new Set(['redis.url', 'redis.mode', `redis.${setting}`])],
  fault: ({ redis }) => fault(redis) ?? false,
})

/** Weather in the cache is known by the URL that it came from, and upstreams by their names. */
const differentUpstreams: Rule = {
  reads: ['provider.baseUrl', 'provider.fallbacks'],
  fault: config => {
    const { fallbacks, baseUrl } = config.provider
    const names = upstreamNamesIn(config)
    const urls = [baseUrl, ...fallbacks.map(each => each.baseUrl)]
    return names.flatMap((name, i) => {
      const twin = urls.indexOf(urls[i] ?? '')
      return [
        ...(names.indexOf(name) < i
          ? [`provider.fallbacks[${i - 1}].name must be unique, got ${name} twice`]
          : []),
        ...(twin < i
          ? [`provider.fallbacks[${i - 1}].baseUrl must be unique, but ${names[twin]} has the same URL`]
          : []),
      ]
    })
  },
}

export const rules: readonly Rule[] = [
  {
    reads: ['server.tls.cert', 'server.tls.key'],
    fault: ({ server: { tls } }) =>
      (tls.cert === null) !== (tls.key === null) &&
      `server.tls.${tls.cert === null ? 'key' : 'cert'} is set, but server.tls.${tls.cert === null ? 'cert' : 'key'} ` +
        'is not: set both of them or neither',
  },
  {
    reads: ['server.host', 'server.tls.cert', 'server.tls.key', 'server.trustedProxies'],
    fault: ({ server: { host, tls, trustedProxies } }) =>
      tls.cert === null &&
      tls.key === null &&
      trustedProxies.length === 0 &&
      !isLoopback(host) &&
      `server.host is "${host}", where plain HTTP is not allowed: set server.tls.cert and server.tls.key, ` +
        'or server.trustedProxies, or a loopback host such as 127.0.0.1',
  },
  anyOriginAlone,
  ratesOfTiers,
  differentUpstreams,
  differentPorts('ops', 'server'),
  differentPorts('health', 'server'),
  differentPorts('health', 'ops'),
  {
    reads: ['ops.host', 'ops.token'],
    fault: ({ ops: { host, token } }) =>
      token === null &&
      !isLoopback(host) &&
      `ops.host is "${host}", where a token is required: set ops.token, best by ABOHAWA_OPS__TOKEN, ` +
        'or a loopback host such as 127.0.0.1',
  },
  {
    reads: ['health.host', 'health.port'],
    fault: ({ health: { host, port } }) =>
      port === null &&
      !isLoopback(host) &&
      `health.host is "${host}", but health.port is not set: set both of them or neither`,
  },
  redisRule(
    'mode',
    ({ url, mode }) =>
      url === null &&
      mode !== 'single' &&
      `redis.mode is ${mode}, but redis.url is not set: set both of them or neither`,
  ),
  redisRule(
    'sentinelMaster',
    ({ url, mode, sentinelMaster }) =>
      url !== null &&
      (mode === 'sentinel') !== (sentinelMaster !== null) &&
      (sentinelMaster === null
        ? 'redis.mode is sentinel, but redis.sentinelMaster is not set: set it to the name of the master group, such as mymaster'
        : `redis.sentinelMaster is set, but redis.mode is ${mode}: it is for sentinel only`),
  ),
  redisRule(
    'sentinelPassword',
    ({ url, mode, sentinelPassword }) =>
      url !== null &&
      mode !== 'sentinel' &&
      sentinelPassword !== null &&
      `redis.sentinelPassword is set, but redis.mode is ${mode}: it is for sentinel only`,
  ),
  redisRule(
    'nodes',
    ({ url, mode, nodes }) =>
      url !== null &&
      mode === 'single' &&
      nodes.length > 0 &&
      'redis.nodes is set, but redis.mode is single: further nodes are for sentinel and cluster only',
  ),
  redisRule('mode', ({ url, mode }) => {
    const database = Number(URL.parse(url ?? '')?.pathname.slice(1) ?? 0)
    return (
      mode === 'cluster' &&
      database !== 0 &&
      `redis.url names database ${database}, but redis.mode is cluster, where there is database 0 only`
    )
  }),
  redisRule(
    'ca',
    ({ url, ca }) =>
      ca !== null &&
      url?.startsWith('redis:') &&
      'redis.ca is set, but redis.url does not start with rediss:// (TLS)',
  ),
  servedAtMost('freshFor', ({ freshForMs, freshForAtMostMs }) => freshForMs > freshForAtMostMs && freshForMs),
  servedAtMost(
    'freshForAtMost',
    ({ freshForMs, freshForAtMostMs }) => freshForMs <= freshForAtMostMs && freshForAtMostMs,
  ),
]
