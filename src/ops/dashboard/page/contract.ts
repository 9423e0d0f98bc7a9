// What the ops listener answers, as far as this page shows it. Types alone, for the checks: the browser never gets this file.
// Instants are ISO 8601 in UTC, shares 0 to 1, durations in seconds; null stands for what is not known.

export type CellState = 'fresh' | 'stale' | 'absent' | 'failed'

export type Cell = {
  id: string
  latitude: number
  longitude: number
  state: CellState
  ageSeconds: number | null
  demand: number
}

export type Cells = { at: string; cellDegrees: number; cells: Cell[] }

export type Window = {
  name: 'minute' | 'hour' | 'day'
  limit: number
  used: number
  resetsAt: string
  exhaustedAt: string | null
}

export type Instance = {
  id: string
  host: string | null
  pid: number | null
  version: string | null
  startedAt: string | null
  phase: string | null
  configHash: string | null
  providerOutage: string | null
  requestsPerSecond: number | null
  hitShare: number | null
  memoryBytes: number | null
  seenAt: string | null
  isSelf: boolean
}

export type Point = {
  requestsPerSecond: number | null
  hitShare: { memory: number | null; shared: number | null; provider: number | null }
  p50: number | null
  p90: number | null
  p99: number | null
  errorsPerSecond: number | null
}

type Values = (number | null)[]

export type History = {
  stepSeconds: number
  endsAt: string
  requestsPerSecond: Values
  hitShare: { memory: Values; shared: Values; provider: Values }
  p50: Values
  p90: Values
  p99: Values
  errorsPerSecond: Values
}

export type Place = { type: string; id: string; name_en: string; name_bn: string }

export type Status = {
  at: string
  version: string
  outages: { outage: 'provider' | 'store'; since: string; code: string; stale: number; errors: number }[]
  instances: Instance[]
  provider: {
    circuit: 'closed' | 'open' | 'half-open'
    retryAt: string | null
    lastSuccessAt: string | null
    lastFailure: { at: string; code: string; message: string } | null
    firstErrorAt: string | null
  }
  budget: {
    shared: boolean
    closure: { until: string; reason: string | null } | null
    windows: Window[]
    demandPerDay: number | null
    stretch: number | null
  }
  run: { initialisedAt: string; availableAt: string; nextExpectedAt: string | null } | null
  cache: {
    entries: number
    bytes: number
    maxBytes: number
    wantedCells: number
    counts: Record<CellState, number>
  }
  store: {
    kind: string
    isUp: boolean
    latencyMs: number | null
    usedBytes: number | null
    fault: string | null
    writeFault: string | null
  }
  catalogue: { places: number; checksum: string | null; fault: string | null }
  certificate: { expiresAt: string; renewal: 'valid' | 'due' | 'urgent' | 'expired' } | null
  config: {
    hash: string | null
    appliedAt: string | null
    fault: string | null
    needsRestart: string[]
    differs: string[]
  }
  keysNearLimit: {
    keyId: string
    subscriber: string | null
    tier: string | null
    used: number
    limit: number
  }[]
  top: {
    places: (Place & { requests: number })[]
    keys: { keyId: string; requests: number; cellsLoaded: number; shareOfDay: number | null }[]
  }
  history?: History
  point?: Point
}

export type Found = Place & { cell: string }

export type Entry = {
  fetchedAt: string
  run: string | null
  purged: 'soft' | 'hard' | null
  bytes: number
  state?: 'fresh' | 'stale' | 'expired'
  dueAt?: string
  freshUntil?: string
  usableUntil?: string
}

/** Instants of the provider's steps that a timeline holds, and how many. */
export type Steps = { from: string; to: string; count: number }

export type Slices = {
  quarterHours: Steps
  hours: Steps
  /** The first and the last local day, as YYYY-MM-DD. */
  days: { from: string; to: string; count: number }
  /** The slice that is right at the instant of the report. */
  now: {
    time: string
    temperature_2m: number | null
    precipitation: number | null
    weather_code: number | null
  } | null
}

export type PurgeReport = { kind: 'soft' | 'hard'; softBecause: string | null }

export type CellReport = {
  places: Place[] | null
  placeCount: number | null
  cell: { id: string; latitude: number; longitude: number }
  at: string
  shared: { kind: string; entry: Entry | null; fault: string | null }
  gateway: {
    memory: Entry | null
    slices: Slices | null
    freshness: 'age' | 'run'
    newestRun: { initialisedAt: string; availableAt: string } | null
    stretch: number | null
    loading: boolean
    lastRequestedAt: string | null
    lastFailure: {
      code: string
      message: string
      failedAt: string
      attempts: number
      backoffUntil: string
    } | null
  } | null
}
