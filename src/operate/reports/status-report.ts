// The JSON of /status, /cells and /search, and of the CLI on the store. Instants are ISO 8601 in UTC, shares 0 to 1, durations
// in seconds; null is unknown.

import * as z from 'zod'

const instant = z.iso.datetime()
const share = z.number().min(0).max(1)
const points = z.array(z.number().nullable()).length(360)

const instance = z.object({
  id: z.string(),
  host: z.string().nullable(),
  pid: z.number().nullable(),
  version: z.string().nullable(),
  startedAt: instant.nullable(),
  phase: z.enum(['starting', 'ready', 'draining']).nullable(),
  configHash: z.string().nullable(),
  /** Over the last ten seconds. */
  requestsPerSecond: z.number().nullable(),
  /** The share of reads of the cache that a tier answered, over the last minute. */
  hitShare: share.nullable(),
  memoryBytes: z.number().nullable(),
  /** The code of the outage of the provider that it sees; null where it sees none. */
  providerOutage: z.string().nullable().default(null),
  /** Of the circuit breaker of the provider, the outages that it sees, and its answers with 5xx in the last five minutes; null for an earlier version. */
  circuit: z.enum(['closed', 'open', 'half-open']).nullable().default(null),
  outages: z
    .array(z.object({ outage: z.enum(['provider', 'store']), since: instant }))
    .nullable()
    .default(null),
  recentErrors: z.number().nullable().default(null),
  /** Of its last heartbeat. */
  seenAt: instant.nullable(),
  isSelf: z.boolean(),
})

/** That is on, as this instance sees it: its first failure, and the sums so far. */
const outage = z.object({
  outage: z.enum(['provider', 'store']),
  since: instant,
  code: z.string(),
  reason: z.string(),
  failures: z.number(),
  /** Requests answered from stale entries, and those that ended in 500. */
  stale: z.number(),
  errors: z.number(),
})

const keyNearLimit = z.object({
  keyId: z.string(),
  subscriber: z.string().nullable(),
  tier: z.string().nullable(),
  used: z.number(),
  limit: z.number(),
})

/** What an upstream answered last. */
const lastRequests = {
  lastSuccessAt: instant.nullable(),
  lastFailure: z.object({ at: instant, code: z.string(), message: z.string() }).nullable(),
}
const circuit = z.enum(['closed', 'open', 'half-open'])
const closure = z.object({ until: instant, reason: z.string().nullable() }).nullable()
const budgetWindow = {
  name: z.enum(['minute', 'hour', 'day']),
  limit: z.number(),
  used: z.number(),
  resetsAt: instant,
}

/** One of several upstreams, in their order. */
const upstream = z.object({
  name: z.string(),
  /** Whether it loads what is asked for now; null where only a gateway knows. */
  inUse: z.boolean().nullable(),
  circuit: circuit.nullable(),
  retryAt: instant.nullable(),
  ...lastRequests,
  closure,
  windows: z.array(z.object(budgetWindow)),
})

export const statusReport = z.object({
  at: instant,
  version: z.string(),
  outages: z.array(outage).nullable(),
  instances: z.array(instance),
  provider: z
    .object({
      circuit: circuit,
      retryAt: instant.nullable(),
      ...lastRequests,
      /** When the first cell in demand can't be served any more if the provider stays away; now where one can't be already. */
      firstErrorAt: instant.nullable(),
    })
    .nullable(),
  budget: z.object({
    /** Whether it is counted over the fleet at present. */
    shared: z.boolean(),
    /** While the provider has said that a limit is reached and no gateway of the account sends a request; else null. */
    closure: closure.default(null),
    /** In the provider's weight; a window without a limit is absent. */
    windows: z.array(
      z.object({
        ...budgetWindow,
        /** When it is used up at the present rate; null if it is not before it resets. */
        exhaustedAt: instant.nullable(),
      }),
    ),
    demandPerDay: z.number().nullable(),
    /** Null also when nothing is left of the budget, which means the longest allowed. */
    stretch: z.number().nullable(),
  }),
  /** Empty where there is one upstream; `provider`, `budget` and `run` are those of the first in any case. */
  upstreams: z.array(upstream).default([]),
  run: z.object({ initialisedAt: instant, availableAt: instant, nextExpectedAt: instant }).nullable(),
  cache: z
    .object({
      entries: z.number(),
      bytes: z.number(),
      maxBytes: z.number(),
      /** Cells in demand, over the fleet. */
      wantedCells: z.number(),
      /** The cells of the catalogue's places, as this instance's memory has them. */
      counts: z.object({
        fresh: z.number(),
        stale: z.number(),
        absent: z.number(),
        failed: z.number(),
      }),
      /** How old weather in demand may get: by the settings, for which share of the demand what was fetched reaches so far, and the least. */
      reach: z
        .object({ allowedSeconds: z.number(), share: share.nullable(), leastSeconds: z.number().nullable() })
        .nullable()
        .default(null),
    })
    .nullable(),
  store: z.object({
    kind: z.enum(['redis', 'embedded']),
    isUp: z.boolean(),
    latencyMs: z.number().nullable(),
    usedBytes: z.number().nullable(),
    fault: z.string().nullable(),
  }),
  catalogue: z.object({ places: z.number(), checksum: z.string(), fault: z.string().nullable() }),
  /** The one that the API serves; null where it serves plain HTTP. */
  certificate: z
    .object({ expiresAt: instant, renewal: z.enum(['valid', 'due', 'urgent', 'expired']).default('valid') })
    .nullable(),
  config: z
    .object({
      hash: z.string().nullable(),
      appliedAt: instant,
      fault: z.string().nullable(),
      /** Settings that take effect with the next start. */
      needsRestart: z.array(z.string()),
      /** The ids of the instances whose settings differ from this one's. */
      differs: z.array(z.string()),
    })
    .nullable(),
  /**
   * The keys that have used 80 % of their day or more, fullest first: of all, or of those that this instance has met where there are
   * too many to read each; null where none of these has, and others may have.
   */
  keysNearLimit: z.array(keyNearLimit).nullable(),
  top: z
    .object({
      /** By the decayed count of requests for the cell of the place. */
      places: z.array(
        z.object({
          type: z.string(),
          id: z.string(),
          name_en: z.string(),
          name_bn: z.string(),
          requests: z.number(),
        }),
      ),
      /** By the requests of the day over the fleet; those for which most cells were loaded too. */
      keys: z.array(
        z.object({
          keyId: z.string(),
          requests: z.number(),
          /** Loaded from the provider through this gateway in the UTC day. */
          cellsLoaded: z.number().default(0),
          /** The weight of these cells as a share of the day's limit; null where it has none. */
          shareOfDay: share.nullable().default(null),
        }),
      ),
    })
    .nullable(),
  history: z
    .object({
      stepSeconds: z.number(),
      endsAt: instant,
      requestsPerSecond: points,
      hitShare: z.object({ memory: points, shared: points, provider: points }),
      p50: points,
      p90: points,
      p99: points,
      errorsPerSecond: points,
    })
    .nullable(),
})

export type StatusReport = z.infer<typeof statusReport>
export type InstanceStatus = StatusReport['instances'][number]
export type KeyNearLimit = z.infer<typeof keyNearLimit>

type KnownByGateway = 'outages' | 'provider' | 'cache' | 'config' | 'top' | 'history'
export type GatewayStatus = Omit<StatusReport, KnownByGateway> & {
  [Part in KnownByGateway]: NonNullable<StatusReport[Part]>
}

/** The traffic of the last hour, and one point of it. */
export type TrafficHistory = GatewayStatus['history']
export type TrafficPoint = LastOf<Omit<TrafficHistory, 'stepSeconds' | 'endsAt'>>
type LastOf<Series> = {
  readonly [Name in keyof Series]: Series[Name] extends (infer Value)[] ? Value : LastOf<Series[Name]>
}

export type CellStatus = {
  readonly id: string
  readonly latitude: number
  readonly longitude: number
  readonly state: 'fresh' | 'stale' | 'absent' | 'failed'
  readonly ageSeconds: number | null
  /** The decayed count of requests. */
  readonly demand: number
}

export type CellsReport = {
  readonly at: string
  readonly cellDegrees: number
  readonly cells: readonly CellStatus[]
}

export type SearchReport = {
  readonly places: readonly {
    readonly type: string
    readonly id: string
    readonly name_en: string
    readonly name_bn: string
    readonly cell: string
  }[]
}
