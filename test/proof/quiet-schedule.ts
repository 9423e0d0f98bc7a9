// A short schedule without random numbers that has an answer of each kind: every endpoint, status and outcome of the cache. Two
// gateways on Redis, clocks that agree, and one fault, of the provider.

import type { PlannedRequest, Schedule, Step } from '../../proof/steps.ts'

const second = 1_000
const minute = 60 * second

const paths = [
  '/weather/district/3026',
  '/weather/coords/22.3/91.8?lang=en&include=place,text',
  '/forecast/district/dhaka?days=3',
  '/weather?places=division/30,coords/23.7/90.4&lang=en',
  '/forecast?places=district/2015,district/3026&days=2',
  '/locations?type=district&q=pur&limit=3&offset=2',
  '/locations/district/2015',
  '/key',
  '/status.json',
]
const wrong = ['/weather/planet/30', '/weather/district/999999', '/forecast/district/3026?days=9', '/nothing']
const neverLoaded = ['/weather/coords/25.74/89.25', '/forecast/district/1004', '/weather/coords/21.43/91.98']

const at = (gateway: number, all: readonly string[], more: Partial<PlannedRequest> = {}): PlannedRequest[] =>
  all.map(path => ({ gateway, key: 'plenty', path, ...more }))
const inTurn = (...requests: readonly PlannedRequest[][]): Step => ({
  do: 'load',
  requests: requests.flat(),
  inTurn: true,
})

export const quietSchedule: Schedule = {
  seed: 0,
  protocol: 'http',
  store: 'redis',
  hasProcesses: false,
  hasFallback: false,
  // 11:07 in Dhaka.
  start: Date.UTC(2031, 2, 4, 5, 7),
  skews: [0, 0],
  settings: {
    'quota.tiers.free': '3',
    'quota.tiers.starter': '60',
    'quota.tiers.business': '400',
    'quota.tiers.enterprise': '100000',
    'quota.rates.starter': '{ perSecond: 2 }',
    'cache.freshness': 'age',
    'cache.freshFor': '10m',
    'cache.freshForAtMost': '1h',
    'cache.staleFor': '1h',
    'provider.budget.perMinute': '',
    'provider.budget.perHour': '',
    'provider.budget.perDay': '',
    // However much else the machine has to do.
    'redis.commandTimeout': '5s',
    'provider.timeout': '5s',
  },
  constants: {
    ABOHAWA_TEST_REDIS__CONNECT_TIMEOUT: '5s',
    ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '5s',
    ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '5s',
    ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '20s',
    ABOHAWA_TEST_CACHE__WAIT_FOR: '60s',
    ABOHAWA_TEST_CACHE__LEASE_FOR: '10s',
  },
  keys: { plenty: 'enterprise', fast: 'starter', few: 'free', narrow: 'enterprise' },
  bound: { narrow: ['weather'] },
  steps: [
    { do: 'move', ms: 13 * second },
    // Missed at one, found in Redis at the other, then in memory.
    inTurn(at(0, paths), at(1, paths)),
    { do: 'move', ms: 3 * second },
    inTurn(
      at(0, paths),
      at(0, paths, { encoding: 'gzip' }),
      at(0, paths, { method: 'HEAD' }),
      at(0, paths, { revalidate: true }),
      at(0, wrong),
      at(0, paths.slice(0, 1), { method: 'POST' }),
      at(0, paths.slice(0, 1), { key: 'nobody' }),
      at(0, paths.slice(2, 3), { key: 'narrow' }),
      at(0, [...paths.slice(0, 2), ...paths.slice(3, 5)], { key: 'few' }),
      at(0, [...paths.slice(0, 1), ...paths.slice(0, 1)], { key: 'few' }),
    ),
    // At once, so that the bucket of a second is used up.
    { do: 'load', requests: at(0, Array(4).fill(paths[0]), { key: 'fast' }) },
    { do: 'provider', id: 'f1', fault: { mode: 'internal-error' } },
    inTurn(at(0, neverLoaded)),
    // Whatever was loaded before has reached its gateway.
    { do: 'move', ms: second, realMs: 600 },
    { do: 'move', ms: 25 * minute },
    // Stale, and cannot be renewed; or missing still.
    inTurn(at(0, paths), at(0, paths), at(0, neverLoaded)),
    // Longer than the status page is kept.
    { do: 'move', ms: 6 * second },
    inTurn(at(0, ['/status.json'])),
    { do: 'heal', id: 'f1' },
    { do: 'move', ms: 10 * second },
    // Stale, and renewed behind it.
    inTurn(at(1, paths.slice(0, 3)), at(1, paths.slice(0, 3))),
  ],
}
