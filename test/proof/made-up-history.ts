// A made-up history of two gateways for tests of the checker: everything in it is right until a test changes it. One key of
// three requests a day, one cell, one body of the provider.

import type { Answer, GatewayEvent, History, HistoryEvent, Moment } from '../../proof/history.ts'
import type { Schedule } from '../../proof/steps.ts'

/** Noon in Dhaka. */
const noon: number = Date.UTC(2031, 5, 1, 6)
export const midnight: number = Date.UTC(2031, 5, 1, 18)

const schedule: Schedule = {
  seed: 0,
  protocol: 'http',
  store: 'redis',
  hasProcesses: false,
  start: noon,
  skews: [0, 0],
  settings: {
    'quota.tiers.tiny': '3',
    'quota.tiers.more': '5',
    'cache.freshFor': '10m',
    'cache.freshForAtMost': '1h',
    'cache.staleFor': '1h',
    'provider.budget.perMinute': '9',
    'provider.budget.perDay': '',
  },
  keys: { one: 'tiny' },
  steps: [],
}

type Event = HistoryEvent extends infer Each
  ? Each extends unknown
    ? Omit<Each, keyof Moment>
    : never
  : never

/** An event, and how long after the begin it happens; its answer is to a request of the same instant. */
export type At = { readonly afterMs: number } & Event

/** @param given replaces settings and skews */
export const historyOf = (events: readonly At[], given: Partial<Schedule> = {}): History => {
  const began: At[] = [
    { afterMs: 0, kind: 'key', key: 'one', what: 'issued', tier: 'tiny' },
    ...[0, 1].map(
      (gateway): At => ({ afterMs: 0, kind: 'gateway', gateway, run: 0, what: 'started', skewMs: 0 }),
    ),
  ]
  const placed = [...began, ...events].map(({ afterMs, ...event }, i) => {
    const moment: Moment = { seq: 10 * i, at: noon + afterMs, ms: afterMs }
    return event.kind === 'answer'
      ? { ...event, ...moment, sent: { ...moment, seq: moment.seq - 1 } }
      : { ...event, ...moment }
  })
  return { schedule: { ...schedule, ...given }, events: placed as HistoryEvent[], stalledMs: 0 }
}

export const life = (afterMs: number, what: GatewayEvent['what'], gateway = 0): At => ({
  afterMs,
  kind: 'gateway',
  gateway,
  run: 0,
  what,
  skewMs: 0,
})

/** The body that the provider says at noon; its wind is that of the body alone. */
const said = (wind: number) => ({
  minutely_15: { time: ['2031-06-01T12:00', '2031-06-01T12:15'], wind_speed_10m: [wind, wind] },
  hourly: { time: ['2031-06-01T12:00', '2031-06-01T13:00'], wind_speed_10m: [wind, wind] },
  daily: { time: ['2031-06-01', '2031-06-02'], temperature_2m_min: [wind, wind] },
})

export const provider = (afterMs: number, wind: number, weight = 3): At => ({
  afterMs,
  kind: 'provider',
  arrivedAt: noon + afterMs,
  points: [[23.7, 90.4]],
  status: 200,
  body: JSON.stringify(said(wind)),
  weight,
})

type Given = Partial<
  Pick<Answer, 'status' | 'path' | 'gateway' | 'ifNoneMatch' | 'failure' | 'body' | 'key' | 'certificate'>
> & {
  readonly headers?: Readonly<Record<string, string>>
}

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
    body: '{"results":[],"total":0,"type":"division"}',
    ...rest,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': 'a',
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
    body: JSON.stringify({
      error: 'e',
      code: 'quota_exhausted',
      limit: 3,
      reset_at: '2031-06-01T18:00:00.000Z',
    }),
    ...given,
    headers: { 'retry-after': '9', ...given.headers },
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
  const body = {
    location: { latitude: 23.71, longitude: 90.41 },
    current: { time: quarter, interval: 900, wind_speed_10m: wind },
    current_units: {},
    hourly,
    hourly_units: {},
    daily,
    daily_units: {},
    timezone: 'Asia/Dhaka',
    utc_offset_seconds: 21_600,
  }
  const headers = {
    'last-modified': new Date(noon).toUTCString(),
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
