// The schema of all settings, section by section, and the only source of them: what each may be, its default, what it is for, and
// whether a change takes effect at once (`live`). config/default.yaml, config/schema.json and docs/operating/configuration.md
// are made of it (`npm run config`). Longer than 300 lines, because the descriptions of all settings stand here.

import * as z from 'zod'
import type { Constants } from './constants.ts'
import {
  decimal,
  duration,
  flag,
  flagOrShare,
  live,
  oneOf,
  section,
  setting,
  sized,
  text,
  whole,
} from './kinds.ts'
import {
  baseUrl,
  bearerToken,
  filePath,
  host,
  hostAndPort,
  providerKey,
  redisPrefix,
  redisUrl,
  secretText,
  timeZone,
  trustedPeer,
  webOrigin,
} from './texts.ts'

const exceptNull = (why: string) => ({
  except: `from null or to null, ${why}`,
  needsRestart: (before: unknown, after: unknown) => before === null || after === null,
})

const file = () => filePath('a file path, or null').nullable()

const certificateFile = () => live(file(), null, exceptNull('which changes between HTTP and HTTPS'))

const server = section`The API for consumers.`({
  host: setting(host(), '127.0.0.1')`
    Address or host name to listen on. Any address except loopback needs TLS or a trusted proxy.`,
  port: setting(whole(0, 65535, ' (0 picks a free port)'), 8080)`
    TCP port of the API; 0 picks a free port and logs it.`,
  reusePort: setting(flag(), false)`
    Share the port with other gateways on this machine (Linux, FreeBSD); serve --processes
    sets this up.`,
  tls: section`Certificate for HTTPS without a proxy. Set cert and key, or neither.`({
    cert: certificateFile()`
        PEM file of the certificate chain. New connections use a changed file immediately.`,
    key: certificateFile()`PEM file of the private key. Only the gateway should be able to read it.`,
    ticketKey: live(file(), null)`
        File of 48 random bytes for TLS session tickets, shared by the fleet; replace it daily. null: a new key at each
        start.`,
    http2: setting(flag(), true)`
        Offer HTTP/2 to TLS clients. HTTP/1.1 costs the gateway less.`,
  }),
  trustedProxies: setting(
    z.array(trustedPeer(), 'a list of IP addresses and CIDR ranges, such as [10.0.0.0/8]'),
    [],
  )`
    Addresses and CIDR ranges of proxies whose x-forwarded-* headers are trusted. Name only your own: a trusted client
    can claim any address.`,
  publicUrl: setting(
    baseUrl('an http or https URL without user, query or fragment, or null').nullable(),
    null,
  )`
    URL at which consumers reach the gateway, for the API reference and doc_url of errors. null: taken from each
    request.`,
  statusPage: setting(flag(), false)`
    Serve /status and /status.json without a key. Their history starts when you first enable them.`,
  cors: section`
    Web pages whose scripts may read responses (CORS). Every visitor can read the key of such a page, so give it a small
    quota.`({
    origins: live(
      z.array(webOrigin(), 'a list of origins, each with a scheme and a host, or ["*"] for any'),
      [],
    )`
      Origins such as https://app.example.org, https://*.example.org (one label) or capacitor://localhost; ["*"] allows
      any, [] none.`,
  }),
  keepAliveTimeout: setting(duration('1s', '24h'), '75s')`
    Idle time between two requests before a connection is closed. Must exceed the idle time of your load balancer, which
    otherwise returns 502.`,
  maxConnections: live(whole(1, 1_000_000), 10_000)`
    Maximum open connections. Each needs a file descriptor (ulimit -n) and about 11 KiB when idle.`,
  maxConnectionsPerAddress: live(whole(1, 1_000_000), 64)`
    Maximum connections of one address (IPv6: one /64) without a valid key so far. Trusted proxies are exempt. Each may
    use 100 KiB.`,
  drainFor: setting(duration('0s', '10m'), '2s')`
    Time for which a stopping gateway is not ready but still answers. Must exceed the interval of the load balancer's
    health checks.`,
})

const ops = section`
  The listener for operators: health, metrics, the cache, and a pass-through to the provider.`({
  host: setting(host(), '127.0.0.1')`
    Address or host name to listen on. Beyond loopback set a token and use a private network: traffic is not encrypted.`,
  port: setting(whole(0, 65535, ' (0 picks a free port)'), 9090)`
    TCP port for operators; 0 picks a free port.`,
  allowedHosts: setting(
    z.array(host(), 'a list of host names and IP addresses, such as [ops.example.org]'),
    [],
  )`
    Host names allowed in requests to the ops and health ports, besides localhost, ops.host, health.host and IP
    addresses.`,
  token: setting(bearerToken().nullable(), null)`
    Bearer token for all requests except health and metrics. Set it with ABOHAWA_OPS__TOKEN. null: no token, on loopback
    only.`,
})

const health = section`
  An optional third listener with only health and metrics, for probes and Prometheus on other machines.`({
  host: setting(host(), '127.0.0.1')`
    Address or host name to listen on. Metrics show traffic and budget: use a private network.`,
  port: setting(whole(0, 65535, ' (0 picks a free port), or null for no such listener').nullable(), null)`
    TCP port for probes and Prometheus; 0 picks a free port. null: no such listener.`,
})

const redis = section`Redis, which several gateways share: keys, usage and the second cache tier.`({
  url: setting(redisUrl().nullable(), null)`
    Redis URL, rediss:// for TLS. In a password write @ / ? # as %40 %2F %3F %23. null: the embedded store, for one
    process.`,
  mode: setting(oneOf(['single', 'sentinel', 'cluster']), 'single')`
    How Redis runs: one server, Sentinel or Redis Cluster. The URL then names the server, the first sentinel or one
    node.`,
  nodes: setting(z.array(hostAndPort(), 'a list of hosts with ports, such as [redis-2:6379]'), [])`
    More sentinels or cluster nodes as host:port, tried when the one in the URL can't be reached.`,
  sentinelMaster: setting(
    text('the name of a master group, such as mymaster, or null', /^[\w.-]+$/).nullable(),
    null,
  )`Name of the master group in Sentinel mode; otherwise null.`,
  sentinelPassword: setting(
    secretText('text without blanks (in quotes if it is all digits), or null').nullable(),
    null,
  )`Password of the sentinels. Set it with ABOHAWA_REDIS__SENTINEL_PASSWORD.`,
  ca: setting(file(), null)`
    PEM file of the authority that signed the certificates of Redis. Needs rediss://. null: the authorities of Node.js.`,
  prefix: setting(text(redisPrefix.allowed, redisPrefix.pattern), 'abohawa:')`
    Prefix of every key in Redis. Changing it starts with no keys, no usage and an empty cache.`,
  commandTimeout: setting(duration('10ms', '1m'), '500ms')`
    Time to wait for one reply of Redis. Too short a time treats a busy Redis as down.`,
})

const store = section`The embedded store, used without Redis.`({
  path: setting(filePath(), 'data/abohawa.db')`
    SQLite file with keys, usage and cached weather. Its directory must be writable and on a local disk.`,
})

// Host, key and budget belong together as one account.
const withAccount = {
  except: 'together with provider.baseUrl or provider.apiKey, whose account it belongs to',
}
const weight = () => whole(1, 1_000_000_000, ', or null for no limit').nullable()

/** An account at a provider, the same for the first upstream and for those behind it. */
const account = () => ({
  baseUrl: setting(baseUrl(), 'https://api.open-meteo.com')`
    URL of the provider. Paying customers of Open-Meteo have a different host.`,
  protocol: setting(oneOf(['open-meteo']), 'open-meteo')`
    Protocol of the provider; Open-Meteo is the only one.`,
  apiKey: setting(providerKey().nullable(), null)`
    Key of the provider. Set it with ABOHAWA_PROVIDER__API_KEY. null: the free service.`,
  timeout: setting(duration('10ms', '2m'), '10s')`
    Time to wait for the headers of a response.`,
  maxConcurrent: setting(whole(1, 256), 1)`
    Maximum concurrent requests to the provider. Open-Meteo accepts 1 to 2 from one client.`,
  maxPointsPerRequest: setting(whole(1, 1000), 100)`
    Maximum points in one request. More means fewer round trips but larger retries.`,
  budget: section`
    Weight that all gateways together may spend at the provider. Defaults: Open-Meteo's free service. Paid plans have
    larger limits or none (null).`({
    perMinute: live(weight(), 600, withAccount)`
        Maximum weight per minute; null for no limit. Loading a cell weighs 3.0.`,
    perHour: live(weight(), 5_000, withAccount)`Maximum weight per hour; null for no limit.`,
    perDay: live(weight(), 10_000, withAccount)`
        Maximum weight per UTC day; null for no limit. When it runs short, weather stays fresh longer, up to
        cache.freshForAtMost.`,
    reserve: live(decimal(0, 0.9), 0.1, withAccount)`
        Share of each limit reserved for cells with nothing cached, so that new places work late in the day.`,
    keyShare: live(decimal(0, 1), 0.25, withAccount)`
        Share of each limit for one key's new and stale cells while other keys need weather too. 1 does not restrict
        keys.`,
  }),
})

const UPSTREAM_NAME = 'up to 32 lower-case letters, digits and hyphens, with a letter first'

const fallback = section`A fallback upstream, with its own account.`({
  ...account(),
  // Without a default: a host that is forgotten is no wish for the public service.
  baseUrl: baseUrl().describe('URL of the provider, http or https, without a query.'),
  name: setting(text(`${UPSTREAM_NAME}, or null`, /^[a-z][a-z0-9-]{0,31}$/).nullable(), null)`
    Name of this upstream; null for fallback-1, fallback-2 and so on.`,
  apiKeyFile: setting(file(), null)`
    File with this upstream's key, instead of apiKey. A new key needs a restart.`,
})

const maxFallbacks = 8
const UPSTREAMS = `a list of up to ${maxFallbacks} upstreams, such as [{ baseUrl: "https://api.open-meteo.com" }]`

const provider = section`Where the weather comes from.`({
  ...account(),
  fallbacks: live(
    z.array(fallback, UPSTREAMS).refine(({ length }) => length <= maxFallbacks, UPSTREAMS),
    [],
    { except: 'in anything of it but budgets' },
  )`
    Upstreams tried in order when the previous one fails, refuses or has no budget. Each needs a baseUrl; other fields
    are optional.`,
})

const catalogue = section`The places with weather.`({
  path: setting(file(), null)`
    File of the locations; it may be replaced while the gateway runs. null: the built-in catalogue.`,
})

const CELL = '1/n degrees for a whole n from 1 to 100, such as 1, 0.5, 0.25, 0.2, 0.1, 0.05 or 0.01'

const cache = section`How long weather is kept, and the size of a grid cell.`({
  cellDegrees: setting(
    z
      .number(CELL)
      .min(0.01, { error: CELL, abort: true })
      .max(1, { error: CELL, abort: true })
      .refine(degrees => Math.abs(Math.round(1 / degrees) * degrees - 1) < 1e-9, CELL)
      .overwrite(degrees => 1 / Math.round(1 / degrees)),
    0.1,
  )`
    Side of a grid cell in degrees. Half the side costs four times as much. Changing it reloads most cells.`,
  freshness: setting(oneOf(['age', 'run']), 'run')`
    What makes weather stale: run (a newer model run exists; about 4 loads a day) or age (freshFor has passed; up to
    24).`,
  freshFor: live(duration('100ms', '48h'), '1h')`
    Time for which weather is fresh by age, and each cell in use is reloaded. Models run every few hours, so shorter
    gains little.`,
  freshForAtMost: live(duration('100ms', '48h'), '12h')`
    Longest time that weather stays fresh: while no newer run appears, or when the daily budget runs short. Longer
    saves budget but serves older weather.`,
  staleFor: live(duration('0s', '48h'), '12h')`
    Time for which stale weather may be served during a refresh or an outage. With freshFor or freshForAtMost at most
    48h.`,
  prefetchPlaces: setting(whole(0, 100_000, ' (0 keeps none)'), 0)`
    Number of most populous places that are kept warm without demand.`,
  memory: setting(sized('64KiB', '64GiB'), '64MiB')`
    Memory for weather in each process, which needs about 330 MiB besides.`,
})

const weather = section`The size of a response.`({
  hourlyHours: setting(whole(1, 168), 48)`
    Hours in the hourly block. More makes every weather response larger.`,
})

const usualTiers = { free: 100, starter: 1_000, business: 10_000, enterprise: 100_000 }
const TIERS = 'a map of tier names to units per day, such as { free: 100 }'
const TIER_NAME = 'a tier name: up to 60 lower-case letters, digits and hyphens, with a letter first'
const tierName = /^[a-z][a-z0-9-]{0,59}$/

const rate = () => z.prefault(whole(1, 1_000_000, ', or null for no limit').nullable(), null)
const RATES = 'a map of tier names to limits, such as { free: { perSecond: 10, perMinute: 300 } }'

const quota = section`How much a key may use.`({
  timeZone: setting(timeZone(), 'Asia/Dhaka')`
    Time zone whose midnight starts a quota day and a forecast day. Changing it shortens or lengthens the current day.`,
  tiers: live(
    z
      .record(
        text(TIER_NAME, tierName),
        z.int('a whole number of at least 1').min(1, 'a whole number of at least 1'),
        TIERS,
      )
      .overwrite(given => ({ ...usualTiers, ...given })),
    usualTiers,
    // Keys may still have the tier, and a misspelt name would refuse all of them.
    { except: 'to take a tier out, which keeps its limit', needsRestart: (_, after) => after === undefined },
  )`Requests per day by tier. Add your own tiers. Keys of a tier that is missing at a start can't be used.`,
  rates: live(
    z.record(
      text(TIER_NAME, tierName),
      z.strictObject(
        {
          perSecond: rate(),
          burst: z.prefault(whole(1, 60_000_000, ', or null for perSecond').nullable(), null),
          perMinute: rate(),
        },
        'a map of perSecond, burst, perMinute',
      ),
      RATES,
    ),
    {},
  )`
    Extra limits by tier: perSecond, burst (requests at the same time; default perSecond) and perMinute. Beyond them a
    request gets 429, uncounted.`,
  notModifiedCost: live(decimal(0, 1), 1)`
    Share of its units that a 304 response costs. With 0, clients that send etags pay only for changed weather.`,
  whenStoreIsDown: setting(oneOf(['share', 'refuse']), 'share')`
    During a store outage: share (gateways admit from local allowances and report later) or refuse (500 with
    retry-after). Neither exceeds quotas.`,
  keepUsageFor: setting(duration('2d', '4000d'), '400d')`
    Time for which daily usage is kept for reports: one record per key and day.`,
})

const log = section`The log: one JSON object a line.`({
  file: setting(file(), null)`
    File to append to; null for standard output. SIGUSR2 reopens it after a rename.`,
  level: live(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), 'info')`
    Lowest level to write. debug and trace reduce throughput.`,
  access: live(flagOrShare(), true)`
    Requests that get a line: true (all), false (none), or a random share such as 0.1 besides all failures (500).`,
  clientAddress: setting(oneOf(['full', 'prefix', 'none']), 'full')`
    How much of a client's address is logged: full, prefix (/24 of IPv4, /48 of IPv6) or none.`,
})

/** Decodes the settings of all files and variables together into what the program uses, and encodes it back. */
export const configSchema = section`Settings of the weather gateway.`({
  server,
  ops,
  health,
  redis,
  store,
  provider,
  catalogue,
  cache,
  weather,
  quota,
  log,
})

type Frozen<Value> = Value extends object ? { readonly [Key in keyof Value]: Frozen<Value[Key]> } : Value

/** What every process needs to know: the settings, and what is no setting; durations are in milliseconds (`…Ms`), sizes in bytes (`…Bytes`). */
export type Config = Frozen<z.output<typeof configSchema> & Constants>
