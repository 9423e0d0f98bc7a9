// The schema of all settings, section by section: the values a config file may hold, the types the program gets, and which
// settings are `live`. Every setting is required here; defaults and descriptions are in config/default.yaml.

import * as z from 'zod'
import { decimal, duration, flag, live, oneOf, sized, text, whole } from './kinds.ts'
import { section } from './section.ts'
import {
  baseUrl,
  bearerToken,
  filePath,
  host,
  hostAndPort,
  isoDate,
  redisPrefix,
  redisUrl,
  secretText,
  socketPath,
  timeZone,
  trustedPeer,
  webOrigin,
  webUrl,
} from './texts.ts'

const exceptNull = (why: string) => ({
  except: `from null or to null, ${why}`,
  needsRestart: (before: unknown, after: unknown) => before === null || after === null,
})

const certificateFile = () =>
  live(filePath('a file path, or null').nullable(), exceptNull('which changes between HTTP and HTTPS'))

const server = section({
  host: host(),
  port: whole(0, 65535, ' (0 picks a free port)'),
  reusePort: flag(),
  socket: socketPath().nullable(),
  socketMode: text('an octal file mode in quotes, such as "0660"', /^0[0-7]{3}$/),
  workers: whole(1, 256),
  workerTimeout: live(duration('2s', '10m')),
  tls: section({
    cert: certificateFile(),
    key: certificateFile(),
    ticketKey: live(filePath('a file path, or null').nullable()),
    http2: flag(),
  }),
  trustedProxies: z.array(
    trustedPeer(),
    'a list of IP addresses and CIDR ranges, such as [10.0.0.0/8], and unix for a Unix socket',
  ),
  publicUrl: baseUrl('an http or https URL without user, query or fragment, or null').nullable(),
  cors: section({
    origins: live(z.array(webOrigin(), 'a list of origins, each with a scheme and a host, or ["*"] for any')),
  }),
  requestTimeout: live(duration('100ms', '10m'), {
    except: 'for TLS handshakes, whose time stays until the next start',
  }),
  keepAliveTimeout: live(duration('1s', '24h')),
  maxConnections: live(whole(1, 1_000_000)),
  maxConnectionsPerAddress: live(whole(1, 1_000_000)),
  drainFor: live(duration('0s', '10m')),
})

const ops = section({
  host: host(),
  port: whole(0, 65535, ' (0 picks a free port)'),
  allowedHosts: live(z.array(host(), 'a list of host names and IP addresses, such as [ops.example.org]')),
  token: live(bearerToken().nullable(), exceptNull('which ops.host depends on')),
  maxConnections: live(whole(8, 10_000)),
  requestTimeout: live(duration('100ms', '1m')),
})

const status = section({
  host: host(),
  port: whole(0, 65535, ' (0 picks a free port), or null for no such listener').nullable(),
  maxConnections: live(whole(8, 10_000)),
})

const redis = section({
  url: redisUrl().nullable(),
  mode: oneOf(['single', 'sentinel', 'cluster']),
  nodes: z.array(hostAndPort(), 'a list of hosts with ports, such as [redis-2:6379]'),
  sentinelMaster: text('the name of a master group, such as mymaster, or null', /^[\w.-]+$/).nullable(),
  sentinelPassword: secretText('text without blanks (in quotes if it is all digits), or null').nullable(),
  ca: filePath('a file path, or null').nullable(),
  prefix: text(redisPrefix.allowed, redisPrefix.pattern),
  connectTimeout: duration('10ms', '1m'),
  commandTimeout: duration('10ms', '1m'),
})

const store = section({ path: filePath() })

// An account is a host, a key and their limits: one is never used with those of another.
const withHost = { except: 'together with provider.baseUrl, whose account it belongs to' }

const provider = section({
  baseUrl: baseUrl(),
  apiKey: live(
    secretText('text without blanks (in quotes if it is all digits), or null').nullable(),
    withHost,
  ),
  connectTimeout: live(duration('10ms', '2m')),
  timeout: live(duration('10ms', '2m')),
  bodyTimeout: live(duration('10ms', '2m')),
  totalTimeout: live(duration('10ms', '10m')),
  maxConcurrent: live(whole(1, 256), withHost),
  maxPointsPerRequest: live(whole(1, 1000)),
  retries: live(whole(0, 10)),
  retryDelay: live(duration('0s', '1m')),
  refusedFor: live(duration('1s', '24h')),
  breaker: section({
    after: live(whole(1, 100)),
    halfOpenAfter: live(duration('100ms', '1h')),
    halfOpenAfterAtMost: live(duration('100ms', '1h')),
  }),
  budget: section({
    perMinute: live(whole(1, 1_000_000_000, ', or null for no limit').nullable(), withHost),
    perHour: live(whole(1, 1_000_000_000, ', or null for no limit').nullable(), withHost),
    perDay: live(whole(1, 1_000_000_000, ', or null for no limit').nullable(), withHost),
    reserve: live(decimal(0, 0.9)),
    keyShare: live(decimal(0, 1)),
    outageShare: live(decimal(0, 0.5)),
  }),
  runs: section({
    model: text('1 to 40 lower-case letters, digits and underscores', /^[a-z0-9_]{1,40}$/),
    pollEvery: live(duration('1s', '1h')),
  }),
})

const source = z.strictObject(
  {
    name: text('text that is not blank'),
    url: webUrl(),
    licence: text('text that is not blank'),
    date: isoDate(),
  },
  'a map of name, url, licence and date',
)

const catalogue = section({
  path: filePath('a file path, or null').nullable(),
  title: text('text of 1 to 200 characters that is not blank', /^(?=.*\S).{1,200}$/u),
  bounds: section({
    south: decimal(-90, 90),
    north: decimal(-90, 90),
    west: decimal(-180, 180),
    east: decimal(-180, 180),
  }),
  pollEvery: live(duration('10ms', '1h')),
  sources: z.array(source, 'a list of sources, each with name, url, licence and date'),
})

const CELL = '1/n degrees for a whole n from 1 to 100, such as 1, 0.5, 0.25, 0.2, 0.1, 0.05 or 0.01'

const cache = section({
  cellDegrees: z
    .number(CELL)
    .min(0.01, { error: CELL, abort: true })
    .max(1, { error: CELL, abort: true })
    .refine(degrees => Math.abs(Math.round(1 / degrees) * degrees - 1) < 1e-9, CELL)
    .overwrite(degrees => 1 / Math.round(1 / degrees)),
  freshness: oneOf(['age', 'run']),
  freshFor: live(duration('100ms', '48h')),
  freshSpread: live(decimal(0, 1)),
  freshForAtMost: live(duration('100ms', '48h')),
  settleFor: live(duration('0s', '6h')),
  spreadOver: live(duration('0s', '6h')),
  staleFor: live(duration('0s', '48h')),
  refreshAheadFor: live(duration('0s', '1h')),
  demandFor: live(duration('1m', '48h')),
  prefetch: live(oneOf(['none', 'population'])),
  prefetchPlaces: live(whole(1, 100_000)),
  warmFor: duration('0s', '1m'),
  retryAfter: live(duration('10ms', '1h')),
  retryAfterAtMost: live(duration('10ms', '1h')),
  waitFor: live(duration('10ms', '10m')),
  leaseFor: live(duration('100ms', '1m')),
  memory: sized('64KiB', '64GiB'),
})

const weather = section({ hourlyHours: whole(1, 168) })

const TIERS = 'a map of tier names to units per day, such as { free: 100 }'
const TIER_NAME = 'a tier name: lower-case letters, digits and hyphens, with a letter first'

const quota = section({
  timeZone: timeZone(),
  tiers: live(
    z.record(
      text(TIER_NAME, /^[a-z][a-z0-9-]*$/),
      z.int('a whole number of at least 1').min(1, 'a whole number of at least 1'),
      TIERS,
    ),
    // Nobody knows at once whether keys have it, and a misspelt name would refuse all of them.
    { except: 'to take a tier out, which keeps its limit', needsRestart: (_, after) => after === undefined },
  ),
  whenStoreIsDown: oneOf(['share', 'refuse']),
  keepUsageFor: duration('2d', '4000d'),
})

const log = section({
  file: filePath('a file path, or null').nullable(),
  level: live(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])),
  access: live(flag()),
  accessShare: live(decimal(0, 1)),
  clientAddress: oneOf(['full', 'prefix', 'none']),
})

const config = section({ watch: live(flag()), pollEvery: live(duration('10ms', '1h')) })

/** Decodes the settings of all files and variables together into what the program uses, and encodes it back. */
export const configSchema = section({
  server,
  ops,
  status,
  redis,
  store,
  provider,
  catalogue,
  cache,
  weather,
  quota,
  log,
  config,
})

type Frozen<Value> = Value extends object ? { readonly [Key in keyof Value]: Frozen<Value[Key]> } : Value

/** The complete configuration; durations are in milliseconds (`…Ms`), sizes in bytes (`…Bytes`). */
export type Config = Frozen<z.output<typeof configSchema>>
