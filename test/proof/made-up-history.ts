// A made-up history of two gateways for tests of the checker: everything in it is right until a test changes it. One key of
// three requests a day, one cell, one body of the provider.

import type { Answer, GatewayEvent, History, HistoryEvent, Moment } from '../../proof/history.ts'
import type { Schedule } from '../../proof/steps.ts'
import { currentUnits, dailyVariables, hourlyVariables } from '../support/weather-contract.ts'

/** Noon in Dhaka. */
export const noon: number = Date.UTC(2031, 5, 1, 6)
export const midnight: number = Date.UTC(2031, 5, 1, 18)

const schedule: Schedule = {
  seed: 0,
  protocol: 'http',
  store: 'redis',
  hasProcesses: false,
  hasFallback: true,
  start: noon,
  skews: [0, 0],
  settings: {
    'quota.tiers.tiny': '3',
    'quota.tiers.more': '5',
    'quota.notModifiedCost': '0',
    'cache.freshFor': '10m',
    'cache.freshForAtMost': '1h',
    'cache.staleFor': '1h',
    'provider.budget.perMinute': '9',
    'provider.budget.perDay': '',
  },
  keys: { one: 'tiny' },
  bound: { narrow: ['weather'] },
  steps: [],
}

type Event = HistoryEvent extends infer Each
  ? Each extends unknown
    ? Omit<Each, keyof Moment>
    : never
  : never

/** An event, and how long after the begin it happens; its answer is to a request of the same instant. */
export type At = { readonly afterMs: number } & Event

export const historyOf = (events: readonly At[]): History => {
  const issued: At = { afterMs: 0, kind: 'key', key: 'one', what: 'issued', tier: 'tiny' }
  const began = [issued, life(0, 'started'), life(0, 'started', 1)]
  const placed = [...began, ...events].map(({ afterMs, ...event }, i) => {
    const moment: Moment = { seq: 10 * i, at: noon + afterMs, ms: afterMs }
    return event.kind === 'answer'
      ? { ...event, ...moment, sent: { ...moment, seq: moment.seq - 1 } }
      : { ...event, ...moment }
  })
  return { schedule, events: placed as HistoryEvent[], stalledMs: 0 }
}

export const life = (afterMs: number, what: GatewayEvent['what'], gateway = 0): At => {
  return { afterMs, kind: 'gateway', gateway, run: 0, what, skewMs: 0 }
}

const names = {
  current: Object.keys(currentUnits),
  hourly: hourlyVariables,
  daily: dailyVariables,
}
const units: Readonly<Record<string, string>> = {
  ...{ time: 'iso8601', interval: 'seconds', ...currentUnits },
  ...{ temperature_2m_max: '°C', temperature_2m_min: '°C' },
  ...{ precipitation_probability: '%', precipitation_probability_max: '%' },
}
const unitsOf = (of: readonly string[]) => Object.fromEntries(of.map(name => [name, units[name]]))
const localFrom = (steps: number, stepMs: number, length: number): string[] =>
  Array.from({ length: steps }, (_, i) =>
    new Date(noon + 6 * hourMs + i * stepMs).toISOString().slice(0, length),
  )
const hourMs = 3_600_000

/** Wind and temperature are the wind of the body, all else is missing. */
const valueFor = (name: string, wind: number): number | null => (/wind|temp/.test(name) ? wind : null)
const listsOf = (wind: number, of: readonly string[], time: readonly string[]) => ({
  time,
  ...Object.fromEntries(of.map(name => [name, time.map(() => valueFor(name, wind))])),
})

/** The body that the provider says at noon; its wind is that of the body alone. */
const said = (wind: number) => ({
  minutely_15: listsOf(wind, names.current, localFrom(2, hourMs / 4, 16)),
  hourly: listsOf(wind, names.hourly, localFrom(48, hourMs, 16)),
  daily: listsOf(wind, names.daily, localFrom(7, 24 * hourMs, 10)),
})

const division = {
  ...{ type: 'division', id: '30', name_en: 'Dhaka', name_bn: 'ঢাকা', slug_en: 'dhaka', latitude: 23.71 },
  ...{ longitude: 90.41, parent_en: null, parent_bn: null, population: 9, area_sq_km: 9 },
}

export const provider = (afterMs: number, wind: number, weight = 3): At => ({
  afterMs,
  kind: 'provider',
  arrivedAt: noon + afterMs,
  points: [[23.7, 90.4]],
  status: 200,
  body: JSON.stringify(said(wind)),
  weight,
})

type Given = Partial<Omit<Answer, 'kind' | 'sent' | keyof Moment>>

/** An answer without weather, to the n-th request of the key. */
export const counted = (afterMs: number, remaining: number, given: Given = {}): At => {
  const { headers, ...rest } = given
  return {
    afterMs,
    kind: 'answer',
    sent: { seq: 0, at: 0, ms: 0 },
    gateway: 0,
    run: 0,
    key: 'one',
    path: '/locations?type=division&limit=1',
    status: 200,
    body: JSON.stringify({ results: [division], total: 8, type: 'division' }),
    ...rest,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': 'a',
      'cache-control': (given.status ?? 200) < 400 ? 'private, max-age=60' : 'no-store',
      link: '<?type=division&limit=1&offset=1>; rel="next"',
      etag: 'W/"places"',
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': String(remaining),
      'x-ratelimit-reset': String(midnight / 1_000),
      ...headers,
    },
  }
}

export const exhausted = (afterMs: number, given: Given = {}): At =>
  counted(afterMs, 0, {
    status: 429,
    body: '{"error":"e","code":"quota_exhausted","limit":3,"reset_at":"2031-06-01T18:00:00.000Z"}',
    ...given,
    headers: { 'retry-after': String(Math.ceil((midnight - noon - afterMs) / 1_000)), ...given.headers },
  })

/** A 304 for the list of divisions. */
export const unchanged = (afterMs: number, remaining: number): At =>
  counted(afterMs, remaining, { status: 304, body: '', ifNoneMatch: 'W/"places"' })

/** The refusal of a key that is bound to another endpoint. */
export const beyondBounds = (afterMs: number, key: string): At =>
  counted(afterMs, 3, { key, status: 403, body: '{"error":"e","code":"key_endpoint_not_allowed"}' })

/** An answer to the key whose limit is two a second; a refusal without what remains. */
export const paced = (afterMs: number, remaining?: number, given: Given = {}): At =>
  counted(afterMs, remaining ?? 1, {
    ...(remaining === undefined && {
      status: 429,
      body: '{"error":"e","code":"rate_limited","limit":2,"reset_at":"2031-06-01T06:00:01.000Z"}',
    }),
    ...given,
    headers: {
      'ratelimit-policy': '"daily";q=3;w=86400, "second";q=2;w=1',
      ...(remaining === undefined && { 'retry-after': '1' }),
    },
  })

export const refused = (afterMs: number): At =>
  counted(afterMs, 0, {
    status: 401,
    body: '{"error":"e","code":"key_revoked"}',
    headers: { 'x-ratelimit-limit': '0', 'www-authenticate': 'ApiKey realm="a"' },
  })

/** Weather of noon with this wind. */
export const weather = (afterMs: number, remaining: number, wind: number, given: Given = {}): At => {
  const { minutely_15, hourly, daily } = said(wind)
  const at = noon + afterMs
  const quarter = minutely_15.time[afterMs < 900_000 ? 0 : 1]
  const now = Object.fromEntries(names.current.map(name => [name, valueFor(name, wind)]))
  const { population: _, area_sq_km: __, ...summary } = division
  const body = {
    location: {
      ...{ ...summary, type: 'district', id: '3026', parent_en: 'Dhaka', parent_bn: 'ঢাকা' },
      ...{ name: 'ঢাকা', parent: 'ঢাকা' },
    },
    current: { time: quarter, interval: 900, ...now },
    current_units: unitsOf(['time', 'interval', ...names.current]),
    hourly,
    hourly_units: unitsOf(['time', ...names.hourly]),
    daily,
    daily_units: unitsOf(['time', ...names.daily]),
    timezone: 'Asia/Dhaka',
    utc_offset_seconds: 21_600,
  }
  const headers = {
    'last-modified': new Date(noon).toUTCString(),
    'cache-control': 'private, max-age=9',
    etag: `W/"${wind} ${quarter}"`,
    'cache-status': 'abohawa; hit; ttl=9; detail=memory',
    ...given.headers,
  }
  return counted(at - noon, remaining, {
    path: '/weather/district/3026',
    body: JSON.stringify(body),
    ...given,
    headers,
  })
}

const list = '/weather?places=district/3026,division/30'

/** The same for two places. */
export const listed = (
  afterMs: number,
  remaining: number,
  wind: number,
  headers: Record<string, string> = {},
): At => {
  const one = weather(afterMs, remaining, wind) as At & Answer
  const first = JSON.parse(one.body)
  const { parent: _, ...place } = first.location
  const location = { ...place, type: 'division', id: '30', parent_en: null, parent_bn: null }
  return {
    ...one,
    path: list,
    body: JSON.stringify([first, { ...first, location }]),
    headers: { ...one.headers, etag: `W/"two ${wind}"`, 'x-ratelimit-cost': '2', ...headers },
  }
}

/** The refusal of such a request, with so many units left. */
export const listRefused = (afterMs: number, left: number): At =>
  exhausted(afterMs, {
    path: list,
    body: JSON.stringify({
      ...{ error: 'e', code: 'quota_insufficient', limit: 3, reset_at: '2031-06-01T18:00:00.000Z' },
      ...{ remaining: left, cost: 2 },
    }),
    headers: {
      'retry-after': String(Math.ceil((midnight - noon - afterMs) / 1_000)),
      ...{ 'x-ratelimit-remaining': String(left), 'x-ratelimit-cost': '2' },
    },
  })

/** The detail of a place by this name. */
export const named = (afterMs: number, name: string): At =>
  counted(afterMs, 2, {
    path: '/locations/district/3026',
    body: JSON.stringify({
      location: {
        ...{ ...division, type: 'district', id: '3026', name_en: name, parent_en: 'Dhaka', parent_bn: 'ঢাকা' },
        ...{ website: null, bbs_code: 3026 },
      },
    }),
  })
