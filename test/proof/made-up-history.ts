// A made-up history of two gateways for tests of the checker: everything in it is right until a test changes it. One key of
// three requests a day, one cell, one body of the provider. Refusals and failures are in made-up-errors.ts.

import type { Answer, GatewayEvent, History, HistoryEvent, Moment, Place } from '../../proof/history.ts'
import type { Schedule } from '../../proof/steps.ts'
import { currentUnits, dailyVariables, hourlyVariables } from '../support/weather-contract.ts'

/** Noon in Dhaka. */
export const noon: number = Date.UTC(2031, 5, 1, 6)
export const midnight: number = Date.UTC(2031, 5, 1, 18)

export const schedule: Schedule = {
  seed: 0,
  protocol: 'http',
  store: 'redis',
  hasProcesses: false,
  hasFallback: true,
  start: noon,
  skews: [0, 0],
  settings: {
    'quota.tiers.tiny': '3',
    'quota.tiers.paced': '3',
    'quota.rates.paced': '{ perSecond: 2 }',
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

const tiers = { one: 'tiny', plenty: 'tiny', narrow: 'tiny', fast: 'paced' }

/** @param more where the schedule differs */
export const historyOf = (events: readonly At[], more: Partial<Schedule> = {}): History => {
  const issued = Object.entries(tiers).map(
    ([key, tier]): At => ({ afterMs: 0, kind: 'key', key, what: 'issued', tier, id: `key_${key}` }),
  )
  const began = [...issued, life(0, 'started'), life(0, 'started', 1)]
  // Gateways find in Redis what was said before.
  const isBefore = ({ kind, afterMs }: At): boolean => kind === 'provider' && afterMs <= 0
  const all = [...events.filter(isBefore), ...began, ...events.filter(event => !isBefore(event))]
  const placed = all.map(({ afterMs, ...event }, i) => {
    const moment: Moment = { seq: 10 * i, at: noon + afterMs, ms: afterMs }
    return event.kind === 'answer'
      ? { ...event, ...moment, sent: { ...moment, seq: moment.seq - 1 } }
      : { ...event, ...moment }
  })
  return { schedule: { ...schedule, ...more }, places, events: placed as HistoryEvent[], stalledMs: 0 }
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
const { parent_en: _, parent_bn: __, ...inCatalogue } = division
const places: readonly Place[] = [
  ...Array.from({ length: 8 }, (_, i) => ({
    ...inCatalogue,
    ...{ parentId: null, website: null, aliases: [] },
    ...(i > 0 && { id: `${i}1`, slug_en: `other-${i}`, population: i }),
  })),
  { ...inCatalogue, type: 'district', id: '3026', parentId: '30', website: null, aliases: [] },
]

export const provider = (afterMs: number, wind: number, weight = 3): At => ({
  afterMs,
  kind: 'provider',
  upstream: 'primary',
  arrivedAt: noon + afterMs,
  points: [[23.7, 90.4]],
  status: 200,
  body: JSON.stringify(said(wind)),
  weight,
})

export type Given = Partial<Omit<Answer, 'kind' | 'sent' | 'bytes' | keyof Moment>>

let answers = 0
/** The headers of every answer but those of its body. */
export const usualHeaders = (afterMs: number, remaining: number, limit: string) => ({
  'x-ratelimit-limit': limit,
  'x-ratelimit-remaining': String(remaining),
  'x-ratelimit-reset': String(midnight / 1_000),
  'ratelimit-policy': `"daily";q=${limit};w=86400`,
  ratelimit: `"daily";r=${remaining};t=${Math.ceil((midnight - noon - afterMs) / 1_000)}`,
  'x-request-id': String(++answers).padStart(20, '0'),
  date: new Date(noon + afterMs).toUTCString(),
})
const foundHeaders = {
  'cache-control': 'private, max-age=60',
  link: '<?type=division&limit=1&offset=1>; rel="next"',
  etag: 'W/"places-of-the-division"',
  vary: 'accept-encoding, x-api-key',
}
const errorHeaders: Readonly<Record<number, Readonly<Record<string, string>>>> = {
  401: { 'www-authenticate': 'ApiKey realm="abohawa"' },
  405: { allow: 'GET, HEAD' },
  500: { 'retry-after': '1' },
}

/** An answer without weather, to the n-th request of the key; an empty header is none. */
export const counted = (afterMs: number, remaining: number, given: Given = {}): At => {
  const { headers: own = {}, ...rest } = given
  const {
    status = 200,
    method,
    body = JSON.stringify({ results: [division], total: 8, type: 'division' }),
  } = given
  const bytes = Buffer.byteLength(body)
  const headers = {
    ...(status !== 304 && {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(method === 'HEAD' ? 9 : bytes),
    }),
    ...(method === 'HEAD'
      ? { connection: 'close' }
      : { connection: 'keep-alive', 'keep-alive': 'timeout=75' }),
    ...usualHeaders(afterMs, remaining, own['x-ratelimit-limit'] ?? '3'),
    ...(status < 400 ? foundHeaders : { 'cache-control': 'no-store', ...errorHeaders[status] }),
    ...own,
  }
  return {
    afterMs,
    kind: 'answer',
    sent: { seq: 0, at: 0, ms: 0 },
    gateway: 0,
    run: 0,
    key: 'one',
    path: '/locations?type=division&limit=1',
    ...rest,
    ...{ status, body, bytes },
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== '')),
  }
}

/** A 304 for the list of divisions. */
export const unchanged = (afterMs: number, remaining: number, given: Given = {}): At =>
  counted(afterMs, remaining, { status: 304, body: '', ifNoneMatch: foundHeaders.etag, ...given })

/** What `cache-status` ends with. */
export const cacheOf = (upstream = 'primary'): string => `; upstream=${upstream}; key="23.7,90.4"`

/** Weather of noon with this wind. */
export const weather = (afterMs: number, remaining: number, wind: number, given: Given = {}): At => {
  const { minutely_15, hourly, daily } = said(wind)
  const at = noon + afterMs
  const quarter = minutely_15.time[afterMs < 900_000 ? 0 : 1]
  const now = Object.fromEntries(names.current.map(name => [name, valueFor(name, wind)]))
  const { population, area_sq_km, ...summary } = division
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
    etag: `W/"${`${wind}_${quarter}`.replace(/\W/g, '_').padEnd(44, '-')}"`,
    'cache-status': `abohawa; hit; ttl=9; detail=memory${cacheOf()}`,
    'content-language': 'bn',
    link: '',
    ...given.headers,
  }
  return counted(at - noon, remaining, {
    path: '/weather/district/3026',
    body: JSON.stringify(body),
    ...given,
    headers,
  })
}

export const list = '/weather?places=district/3026,division/30'

/** The same for two places. */
export const listed = (
  afterMs: number,
  remaining: number,
  wind: number,
  headers: Record<string, string> = {},
): At => {
  const { body } = weather(afterMs, remaining, wind) as At & Answer
  const first = JSON.parse(body)
  const { parent: _, ...place } = first.location
  const location = { ...place, type: 'division', id: '30', parent_en: null, parent_bn: null }
  return weather(afterMs, remaining, wind, {
    path: list,
    body: JSON.stringify([first, { ...first, location }]),
    headers: {
      ...{ etag: `W/"${`two_${wind}`.padEnd(22, '-')}"`, 'x-ratelimit-cost': '2' },
      'cache-status': 'abohawa; hit; ttl=9; detail="2 hit"',
      ...headers,
    },
  })
}

/** The detail of a place by this name. */
export const named = (afterMs: number, name: string): At =>
  counted(afterMs, 2, {
    path: '/locations/district/3026',
    headers: { link: '' },
    body: JSON.stringify({
      location: {
        ...{ ...division, type: 'district', id: '3026', name_en: name, parent_en: 'Dhaka', parent_bn: 'ঢাকা' },
        ...{ website: null, bbs_code: 3026 },
      },
    }),
  })
