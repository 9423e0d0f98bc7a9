// The schema of all settings, section by section, and the only source of them: what each may be, its default, what it is for, and
// whether a change takes effect at once (`live`). config/default.yaml, config/schema.json and docs/operating/configuration.md
// are made of it (`npm run config`). Longer than 300 lines, because the descriptions of all settings stand here.

import * as z from 'zod'
import type { Constants } from './constants.ts'
import { decimal, duration, flag, live, oneOf, section, setting, sized, text, whole } from './kinds.ts'
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

const server = section`The API that consumers call.`({
  host: setting(host(), '127.0.0.1')`
    Address or host name to listen on. Any address but a loopback one needs TLS or a trusted proxy, below.`,
  port: setting(whole(0, 65535, ' (0 picks a free port)'), 8080)`
    TCP port of the API, 0 to 65535; 0 takes any free port and reports it in the log.`,
  reusePort: setting(flag(), false)`
    Whether other gateways on this machine may listen on the port too. The kernel shares connections out among them;
    each needs an ops.port (and health.port) of its own, and all of them one store. serve --processes sets all of that,
    and refuses a port that others listen on unless this is true. Linux and FreeBSD have it.`,
  tls: section`
    Certificate for HTTPS straight from the gateway. Set both files or neither; neither means that a proxy does it.`(
    {
      cert: certificateFile()`
      File of the certificate chain in PEM, or null. New connections get a new certificate as soon as the file
      changes.`,
      key: certificateFile()`
      File of the certificate's private key in PEM, or null. It should be readable to the gateway alone.`,
      ticketKey: live(file(), null)`
      File of 48 random bytes (openssl rand 48) that seals the tickets with which clients resume a TLS session, or
      null for a key that the gateway makes at its start. With one file at all gateways of a fleet, a client resumes
      at any of them. It must be closed to other users of the machine. Change it daily; a new one takes effect as soon
      as the file changes.`,
      http2: setting(flag(), true)`
      Whether HTTP/2 is offered where the gateway speaks TLS (ALPN). Clients that do not choose it speak HTTP/1.1,
      which costs the gateway less; over HTTP/2 many requests share one connection without waiting for one another.`,
    },
  ),
  trustedProxies: setting(
    z.array(trustedPeer(), 'a list of IP addresses and CIDR ranges, such as [10.0.0.0/8]'),
    [],
  )`
    Addresses and CIDR ranges of proxies whose x-forwarded-* headers are trusted. A client that connects from such an
    address can claim any caller's address and HTTPS, so name your own proxies and nothing wider.`,
  publicUrl: setting(
    baseUrl('an http or https URL without user, query or fragment, or null').nullable(),
    null,
  )`
    URL at which consumers reach the gateway, such as https://weather.example.org or https://example.org/weather
    behind a proxy that serves it under a path; null for the scheme and host of each request. The API reference and
    its programs name it, and so does doc_url of each error, which without it is a path from the root: under a path
    of a proxy it leads to the reference only with this setting.`,
  statusPage: setting(flag(), false)`
    Whether /status and /status.json say to anyone, without a key, how fresh the weather is, what is out since when, and
    how the last thirty days were: shares, ages and times alone. The days are kept in the store from the first start with
    it on.`,
  cors: section`
    Web pages whose scripts may read responses (CORS). They need a key of their own, which every visitor of such a
    page can read: give it a small quota.`({
    origins: live(
      z.array(webOrigin(), 'a list of origins, each with a scheme and a host, or ["*"] for any'),
      [],
    )`
      Origins of the pages, such as [https://app.example.org], https://*.example.org with a star for exactly one
      label, those of apps and extensions, such as capacitor://localhost, or ["*"] for any; [] for none. With one,
      browsers' OPTIONS requests are answered 204 without a key and without being counted; those of other origins are
      403.`,
  }),
  requestTimeout: setting(duration('100ms', '10m'), '30s')`
    Duration within which a request must have arrived completely. Shorter frees the connections of stalled callers
    sooner; too short cuts off callers on slow lines.`,
  keepAliveTimeout: setting(duration('1s', '24h'), '75s')`
    Duration for which a connection may be idle between two requests; it is closed a second later. It must be longer
    than the same time of the balancer in front, which else sends a request on a connection that is just being closed,
    and answers 502.`,
  maxConnections: live(whole(1, 1_000_000), 10_000)`
    Open connections, 1 to 1000000. Beyond it new ones are closed. A connection that rests costs some 11KiB, and a file
    descriptor (ulimit -n).`,
  maxConnectionsPerAddress: live(whole(1, 1_000_000), 64)`
    Open connections from one address (for IPv6, from one /64) without a good key so far, 1 to 1000000. Beyond it new
    ones from there are closed at once. A good key takes its connection out of the count; addresses of trustedProxies
    are not counted. More lets more people behind one address connect in the same instant; each connection may cost
    100KiB.`,
  drainFor: setting(duration('0s', '10m'), '2s')`
    Duration for which a stopping gateway is not ready but still answers, before it closes its port. It must be longer
    than the interval of the load balancer's checks, and it makes every restart take that long.`,
})

const ops = section`
  The second port, for operators: health, metrics, the cache, and a pass-through to the provider.`({
  host: setting(host(), '127.0.0.1')`
    Address or host name to listen on. Beyond loopback a token is required; traffic is not encrypted, so open it to a
    private network at most. A name given here is allowed in the host header too.`,
  port: setting(whole(0, 65535, ' (0 picks a free port)'), 9090)`
    TCP port for operators, 0 to 65535; 0 takes any free port. It must not be another listener's port on the same
    host.`,
  allowedHosts: setting(
    z.array(host(), 'a list of host names and IP addresses, such as [ops.example.org]'),
    [],
  )`
    Host names that requests to this port and the health port may use, beside localhost, the names in ops.host and
    health.host, and every IP address. A request with another name in its host header is refused, because a web page
    can make a name of its own point here.`,
  token: setting(bearerToken().nullable(), null)`
    Token that callers show as "authorization: Bearer ...", for all but health and metrics; null asks for none, which
    is for loopback only. Give it as ABOHAWA_OPS__TOKEN rather than in a file. Without it every user of the machine
    may purge and spend the provider's quota.`,
})

const health = section`
  A third port, for probes and Prometheus: health and metrics and nothing else, so that only these need to be reached
  from other machines. The operators' port answers them too.`({
  host: setting(host(), '127.0.0.1')`
    Address or host name to listen on. A name given here is allowed in the host header too. Metrics show how much
    traffic and budget there is, so open it to a private network at most.`,
  port: setting(whole(0, 65535, ' (0 picks a free port), or null for no such listener').nullable(), null)`
    TCP port for probes and Prometheus, 0 to 65535, or null for no such listener; 0 takes any free port.`,
})

const redis = section`
  What several gateways share: keys, usage and the second tier of the cache.`({
  url: setting(redisUrl().nullable(), null)`
    URL of Redis, redis:// or rediss:// (TLS), with password and database if need be; the signs @ / ? # of a password
    are written %40 %2F %3F %23. With null the gateway keeps everything in a file of its own (store.path), which is
    right for one process and wrong for two.`,
  mode: setting(oneOf(['single', 'sentinel', 'cluster']), 'single')`
    How Redis is run: single (one server), sentinel (a master that Sentinel watches and replaces) or cluster (Redis
    Cluster). With sentinel the URL names the first sentinel, and its user, password and database are those of the
    watched servers; with cluster it names the first node to ask. TLS (rediss://) then holds for all of them.`,
  nodes: setting(z.array(hostAndPort(), 'a list of hosts with ports, such as [redis-2:6379]'), [])`
    Further sentinels, or nodes of the cluster, as host:port, asked when the one of the URL can't be reached. The rest
    is found through them.`,
  sentinelMaster: setting(
    text('the name of a master group, such as mymaster, or null', /^[\w.-]+$/).nullable(),
    null,
  )`
    Name under which the sentinels know the master, or null unless mode is sentinel.`,
  sentinelPassword: setting(
    secretText('text without blanks (in quotes if it is all digits), or null').nullable(),
    null,
  )`
    The sentinels' own password, or null. Give it as ABOHAWA_REDIS__SENTINEL_PASSWORD rather than in a file.`,
  ca: setting(file(), null)`
    File in PEM of the authority behind the certificates of Redis, or null for those that Node.js knows. Needs
    rediss://. A new file needs a restart.`,
  prefix: setting(text(redisPrefix.allowed, redisPrefix.pattern), 'abohawa:')`
    Prefix of every key in Redis, so that others may use the same server. Changing it starts with no keys, no usage
    and an empty cache.`,
  commandTimeout: setting(duration('10ms', '1m'), '500ms')`
    Duration to wait for one reply of Redis. Shorter keeps requests quick while Redis is slow; too short takes a busy
    Redis for one that is down.`,
})

const store = section`The embedded store, used when there is no Redis.`({
  path: setting(filePath(), 'data/abohawa.db')`
    SQLite file with keys, usage and cached weather; its directory must be writable and on a local disk.`,
})

// An account is a host, a key and their budget: one is never used with that of another.
const withAccount = {
  except: 'together with provider.baseUrl or provider.apiKey, whose account it belongs to',
}
const weight = () => whole(1, 1_000_000_000, ', or null for no limit').nullable()

/** An account at a provider, the same for the first upstream and for those behind it. */
const account = () => ({
  baseUrl: setting(baseUrl(), 'https://api.open-meteo.com')`
    URL of the provider, http or https, without a query. Customers of Open-Meteo have a host of their own.`,
  protocol: setting(oneOf(['open-meteo']), 'open-meteo')`
    Protocol of the provider. So far there is one.`,
  apiKey: setting(providerKey().nullable(), null)`
    The provider's key, or null for its free service. Give it as ABOHAWA_PROVIDER__API_KEY rather than in a file.`,
  timeout: setting(duration('10ms', '2m'), '10s')`
    Duration to wait for the headers of the provider's response. Shorter notices a slow provider sooner and gives up
    on responses that would have come.`,
  maxConcurrent: setting(whole(1, 256), 1)`
    Requests to the provider under way at once, 1 to 256. Open-Meteo takes 1 to 2 from one client and refuses more.`,
  maxPointsPerRequest: setting(whole(1, 1000), 100)`
    Points of weather in one request, 1 to 1000. More means fewer round trips when many cells are cold, but larger
    responses, and more to repeat when one fails. The provider's quota counts points either way.`,
  budget: section`
    What may be spent at the provider, in its weight, by all gateways together. The defaults are those of Open-Meteo's
    free service, whose windows are fixed on the clock; a paid plan has none of the first three (null) or its own.`(
    {
      perMinute: live(weight(), 600, withAccount)`
      Weight per minute, or null for no limit. A cell that is fetched weighs 3.0.`,
      perHour: live(weight(), 5_000, withAccount)`Weight per hour, or null for no limit.`,
      perDay: live(weight(), 10_000, withAccount)`
      Weight per UTC day, or null for no limit. As it runs short, weather stays fresh longer (cache.freshForAtMost).`,
      reserve: live(decimal(0, 0.9), 0.1, withAccount)`
      Share of each limit, 0 to 0.9, that is kept for cells with nothing cached. More keeps new places possible late
      in the day, and leaves less for the ones already in use.`,
      keyShare: live(decimal(0, 1), 0.25, withAccount)`
      Share of each limit, 0 to 1, that one key's new and stale cells may use while other keys ask for weather: near
      the end of a limit half of what the others left. What nobody has used so far is free to all. More lets one key
      fill its cache sooner, at the others' cost; 1 bounds no key.`,
      outageShare: live(decimal(0, 0.5), 0.05, withAccount)`
      Share of each limit, 0 to 0.5, that is set aside for gateways that have lost Redis: each of them loads its part
      of it and nothing else, as long as Redis is away. More loads more then, and leaves less for all at other times.
      Without Redis, and with one process
      (server.reusePort is false), nothing is set aside.`,
    },
  ),
})

const UPSTREAM_NAME = 'up to 32 lower-case letters, digits and hyphens, with a letter first'
const upstreamName = (allowed = UPSTREAM_NAME) => text(allowed, /^[a-z][a-z0-9-]{0,31}$/)

const fallback = section`An upstream behind the first: an account as provider has it.`({
  ...account(),
  // Without a default: a host that is forgotten is no wish for the public service.
  baseUrl: baseUrl().describe('URL of the provider, http or https, without a query.'),
  name: setting(upstreamName(`${UPSTREAM_NAME}, or null`).nullable(), null)`
    Name of this upstream for consumers and operators, or null for fallback-1, fallback-2 and so on.`,
  apiKeyFile: setting(file(), null)`
    File that holds this upstream's key, in place of apiKey, or null. A new key needs a restart.`,
})

const maxFallbacks = 8
const UPSTREAMS = `a list of up to ${maxFallbacks} upstreams, such as [{ baseUrl: "https://api.open-meteo.com" }]`

const provider = section`
  Where the weather comes from.`({
  ...account(),
  name: setting(upstreamName(), 'primary')`
    Name of this upstream in cache-status, metrics and log where there are fallbacks.`,
  fallbacks: live(
    z.array(fallback, UPSTREAMS).refine(({ length }) => length <= maxFallbacks, UPSTREAMS),
    [],
    { except: 'in anything of it but budgets' },
  )`
    Upstreams behind this one, in their order, each with a baseUrl of its own, protocol, name, apiKey or apiKeyFile,
    timeout, maxConcurrent, maxPointsPerRequest and budget, whose defaults are those above. A cell is loaded
    from the next one when the one before it has failed or refused, its circuit is open or its budget has no room. One with
    another behind it has at most 5s for a response.`,
})

const catalogue = section`The places there is weather for.`({
  path: setting(file(), null)`
    File of the locations, or null for the one that comes with the product. It may be replaced while the gateway runs.`,
})

const CELL = '1/n degrees for a whole n from 1 to 100, such as 1, 0.5, 0.25, 0.2, 0.1, 0.05 or 0.01'

const cache = section`
  How long weather is kept, and for how large an area one response of the provider counts.`({
  cellDegrees: setting(
    z
      .number(CELL)
      .min(0.01, { error: CELL, abort: true })
      .max(1, { error: CELL, abort: true })
      .refine(degrees => Math.abs(Math.round(1 / degrees) * degrees - 1) < 1e-9, CELL)
      .overwrite(degrees => 1 / Math.round(1 / degrees)),
    0.1,
  )`
    Side of a grid cell in degrees: 1/n for a whole n from 1 to 100. Smaller cells are truer to the place, and cost the
    provider's quota with the square: half the side is four times the cells. After a change most cells are fetched
    anew.`,
  freshness: setting(oneOf(['age', 'run']), 'run')`
    What makes weather stale: run (a newer run of the provider's model is available) or age (it was fetched freshFor
    ago). By run costs a cell 4 fetches a day where an hour of age costs 24, and is newer when it matters; age is for
    a provider that does not publish its runs, and holds by run as long as none could be read.`,
  freshFor: live(duration('100ms', '48h'), '1h')`
    Duration for which weather counts as fresh, by age. Shorter is closer to the provider, at a weight of 3.0 of its
    quota per cell in use and interval; its models run every few hours, so less than an hour buys little.`,
  freshForAtMost: live(duration('100ms', '48h'), '12h')`
    Duration to which freshness is stretched at most when provider.budget.perDay runs short, and for which weather is
    fresh at most when no newer run comes. Longer makes a small budget last, with older weather; no longer than
    freshFor never stretches.`,
  staleFor: live(duration('0s', '48h'), '12h')`
    Duration for which stale weather may still be served, while it is refreshed or the provider is down. Together with
    freshFor or freshForAtMost at most 48h. Longer survives longer outages with older weather.`,
  prefetchPlaces: setting(whole(0, 100_000, ' (0 keeps none)'), 0)`
    Number of places, those with the most people first, that are kept warm without demand; 0 keeps none. Each further
    cell costs as much as one in steady demand.`,
  memory: setting(sized('64KiB', '64GiB'), '64MiB')`
    Memory for weather in each process, as a size. Less means more reads from the shared tier; the process needs some
    330MiB beside it when all of the box is requested.`,
})

const weather = section`How much weather a response holds.`({
  hourlyHours: setting(whole(1, 168), 48)`
    Hours in the hourly block, 1 to 168. More makes every weather response larger.`,
})

const usualTiers = { free: 100, starter: 1_000, business: 10_000, enterprise: 100_000 }
const TIERS = 'a map of tier names to units per day, such as { free: 100 }'
const TIER_NAME = 'a tier name: lower-case letters, digits and hyphens, with a letter first'

const rate = () => z.prefault(whole(1, 1_000_000, ', or null for no limit').nullable(), null)
const RATES = 'a map of tier names to limits, such as { free: { perSecond: 10, perMinute: 300 } }'

const quota = section`How much a key may use: by the day, and by the second and minute if need be.`({
  timeZone: setting(timeZone(), 'Asia/Dhaka')`
    Time zone, by its name in the IANA database, whose midnight ends a day of quota and whose day starts a forecast. A
    change in the middle of a day cuts that day short or lengthens it.`,
  tiers: live(
    z
      .record(
        text(TIER_NAME, /^[a-z][a-z0-9-]*$/),
        z.int('a whole number of at least 1').min(1, 'a whole number of at least 1'),
        TIERS,
      )
      .overwrite(given => ({ ...usualTiers, ...given })),
    usualTiers,
    // Nobody knows at once whether keys have it, and a misspelt name would refuse all of them.
    { except: 'to take a tier out, which keeps its limit', needsRestart: (_, after) => after === undefined },
  )`
    Requests per day by tier, whole numbers of at least 1. Add tiers of your own, beside these; a key whose tier is not
    listed at a start can't be used. The quota guards the gateway, not the provider: most requests are cached.`,
  rates: live(
    z.record(
      text(TIER_NAME, /^[a-z][a-z0-9-]*$/),
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
    Limits by the second and minute by tier, beside that of the day; a tier that is not listed has none. A key may send
    burst requests at once (as many as perSecond where it is not given) and perSecond each second on; likewise
    perMinute. A request beyond either is 429 and takes no unit of the day. A key's own limits replace these.`,
  testPerDay: live(whole(1, 999_999_999_999), 1_000)`
    Requests per day of a test key, 1 to 999999999999, unless it has a limit of its own. They cost the provider nothing,
    and the gateway more time each than a cached one.`,
  notModifiedCost: live(decimal(0, 1), 1)`
    Share of its units that a request costs whose answer is 304, not modified, 0 to 1. With 0 programs that keep answers and
    ask again with their etag pay for what changed alone. A fraction is given back once it comes to a whole unit.`,
  whenStoreIsDown: setting(oneOf(['share', 'refuse']), 'share')`
    What happens while the store is away: share (each gateway admits from its local allowance, an equal share of what
    was left of every key it knows, and reports it afterwards) or refuse (500 with retry-after). Neither exceeds the
    quota.`,
  keepUsageFor: setting(duration('2d', '4000d'), '400d')`
    Duration for which daily usage is kept for reports, at least 2d. Longer takes more room: a line per key and day.`,
})

const log = section`The log, one JSON object a line.`({
  file: setting(file(), null)`
    File that lines are appended to, or null for standard output. SIGUSR2 reopens it after it was renamed.`,
  level: live(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), 'info')`
    The least important lines to write: trace, debug, info, warn, error, fatal or silent. Debug and trace cost speed.`,
  access: live(flag(), true)`
    Whether to write one line per API request. Under heavy load most of the log's volume and cost is this.`,
  accessShare: live(decimal(0, 1), 1)`
    Share of the answered requests that get a line, 0 to 1, drawn by chance; failures (500) always get one. Less makes
    the log smaller and cheaper; each line then has the share, so that counts can be scaled up again.`,
  clientAddress: setting(oneOf(['full', 'prefix', 'none']), 'full')`
    How much of a client's address a request's line contains: full, prefix (its network: /24 of IPv4, /48 of IPv6) or
    none. Less is kinder to people, whose addresses are personal data, and makes an abuser harder to block.`,
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
