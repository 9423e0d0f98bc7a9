// Without it the checker of histories could miss a broken promise or report a kept one.

import t from 'tap'
import { promiseNumbers } from '../../proof/promises.ts'
import type { Step } from '../../proof/steps.ts'
import { type Case, testCases } from './cases.ts'
import {
  beyondBounds,
  exhausted,
  failed,
  failing,
  listFailed,
  listRefused,
  paced,
  refused,
  wrongMethod,
} from './made-up-errors.ts'
import {
  type At,
  cacheOf,
  counted,
  life,
  listed,
  midnight,
  named,
  noon,
  provider,
  schedule,
  unchanged,
  weather,
} from './made-up-history.ts'

const minute = 60_000
const phase = (afterMs: number, name: 'end' | 'judged'): At => ({ afterMs, kind: 'phase', phase: name })
const lost = (afterMs: number): At =>
  counted(afterMs, 0, { status: 0, body: '', headers: {}, failure: 'ECONNRESET' })
const revoked = (afterMs: number): At => ({ afterMs, kind: 'key', key: 'one', what: 'revoked' })
const rotated = (afterMs: number, untilMs: number): At => {
  return { afterMs, kind: 'key', key: 'one', what: 'rotated', until: noon + untilMs }
}
const endsAt = (afterMs: number) => ({ 'x-key-expires': new Date(noon + afterMs).toISOString() })
const refusedFormer = (afterMs: number): At => ({ ...refused(afterMs, 'key_replaced'), former: true }) as At
const tier = (afterMs: number): At => ({ afterMs, kind: 'key', key: 'one', what: 'tier', tier: 'more' })
const ready = (afterMs: number, quota: string): At => {
  const body = `{"status":"ready","detail":{"quota":"${quota}"}}`
  return { afterMs, kind: 'ready', gateway: 0, status: 200, body }
}
const taken = (afterMs: number, step: Step): At => ({ afterMs, kind: 'step', step })
const away = (afterMs: number): At => taken(afterMs, { do: 'store', id: 'f1', fault: 'frozen' })
const back = (afterMs: number): At => taken(afterMs, { do: 'heal', id: 'f1' })
const emptied = (afterMs: number): At[] => [
  taken(afterMs, { do: 'empty' }),
  taken(afterMs + 1, { do: 'move', ms: 1 }),
]
const cutOff = (afterMs: number, gateways: readonly number[] = [0]): At =>
  taken(afterMs, { do: 'link', id: 'f1', gateways, fault: { kind: 'refuse' } })
const spent = [counted(1, 2), counted(2, 1), counted(3, 0)]
const spentAgain = (afterMs: number): At[] => [
  counted(afterMs, 2, { gateway: 1 }),
  exhausted(afterMs + 1, { gateway: 1 }),
]
const renewed = (afterMs: number, what: 'certificate' | 'name', value: string): At => {
  return { afterMs, kind: 'renewed', what, value }
}
const purged = (afterMs: number, hard = true): At => ({ afterMs, kind: 'purged', gateway: 0, hard })
const [said, seen] = [provider(0, 7), weather(1, 2, 7)]
const twoSaid = [said, provider(1, 8)]
const withHeaders = (afterMs: number, headers: Record<string, string>): At =>
  weather(afterMs, 2, 7, { headers })
const ofPlenty = (afterMs: number, remaining: number, headers: Record<string, string> = {}): At =>
  weather(afterMs, remaining, 7, { key: 'plenty', headers })
const stored = (afterMs: number, wind: number): At =>
  weather(afterMs, 2, wind, {
    headers: { 'cache-status': `abohawa; fwd=miss; collapsed; stored; ttl=9${cacheOf()}` },
  })
const sharedAt = (afterMs: number, wind: number): At =>
  weather(afterMs, 1, wind, {
    gateway: 1,
    headers: { 'cache-status': `abohawa; hit; ttl=9; detail=redis${cacheOf()}` },
  })

const hitFor = (ttl: number): string => `abohawa; hit; ttl=${ttl}; detail=memory${cacheOf()}`

const ofFallback = { ...said, upstream: 'fallback-1' } as At
const weatherOf = (afterMs: number, upstream: string): At =>
  withHeaders(afterMs, { 'cache-status': `abohawa; hit; ttl=9; detail=memory${cacheOf(upstream)}` })
/** The body of the weather with one more field. */
const withField = (name: string): string =>
  JSON.stringify({ ...JSON.parse((seen as At & { body: string }).body), [name]: 1 })

/** Weather that is old already, of a list whose places were all loaded, or all found. */
const late = (how: 'miss' | 'hit'): At =>
  listed(20_000, 1, 7, {
    'cache-status': `abohawa; ${how === 'miss' ? 'fwd=miss' : how}; ttl=-11; detail="2 ${how}"`,
    'cache-control': 'private, max-age=0',
  })

const byAge = { settings: { ...schedule.settings, 'cache.freshness': 'age' } }
const staleList = listed(20_000, 1, 7, {
  'cache-status': 'abohawa; fwd=stale; ttl=-1; detail="2 stale"',
  'cache-control': 'private, max-age=0',
})
/** A load that was given up by who waited for it, and its weather, purged when it came. */
const purgedLoad = [
  failed(1, 2, 'waited_too_long', { path: '/weather/district/3026', headers: { 'retry-after': '10' } }),
  purged(500, false),
  provider(1_000, 7),
  weather(2_000, 1, 7, {
    headers: {
      'cache-status': `abohawa; fwd=stale; ttl=0; detail=memory${cacheOf()}`,
      'cache-control': 'private, max-age=0',
    },
  }),
]

const modifiedAt = (afterMs: number): At =>
  weather(afterMs, 1, 7, { headers: { 'last-modified': new Date(noon + afterMs).toUTCString() } })

const cases: readonly Case[] = [
  [1, [life(1, 'killed'), lost(2)], [lost(1), life(2, 'killed')]],
  [2, [counted(1, 2)], [counted(1, 2, { headers: { 'content-type': 'text/html' } })]],
  [2, [...spent, exhausted(4)], [...spent, exhausted(4, { headers: { 'retry-after': '43200.0' } })]],
  // What no rule can read.
  [2, [said, seen], [said, weather(1, 2, 7, { body: '[null]' })]],
  // What no rule is about.
  [2, [counted(1, 2)], [counted(1, 2, { headers: { 'x-new': '1' } })]],
  [2, [said, seen], [said, weather(1, 2, 7, { body: withField('new') })]],
  [2, [...spent, away(4), exhausted(5)], [failed(1, 2, 'internal_error')]],
  [2, [said, seen], [said, weather(1, 2, 7, { path: '/weather/district/3026?lang=en' })]],
  [
    2,
    [named(1, 'Dhaka')],
    [counted(1, 2, { headers: { link: '<?type=division&limit=1&offset=2>; rel="next"' } })],
  ],
  [2, [...spent, exhausted(4)], [...spent, exhausted(4, { headers: { 'retry-after': '9' } })]],
  [2, [counted(1, 2, { method: 'HEAD', body: '' })], [{ ...wrongMethod(1, 2), method: 'HEAD' } as At]],
  [2, [beyondBounds(1, 'narrow')], [counted(1, 2, { key: 'narrow' })]],
  [2, [beyondBounds(1, 'narrow')], [beyondBounds(1, 'narrow', 'forecast')]],
  [2, [counted(1, 2)], [beyondBounds(1, 'one')]],
  [3, [said, seen], [said, weather(1, 2, 8)]],
  [3, [said, weather(14 * minute, 2, 7)], [provider(-150 * minute, 7), seen]],
  [
    3,
    [said, weather(5 * minute, 2, 7)],
    [said, withHeaders(5 * minute, { 'last-modified': 'Sun, 01 Jun 2031 06:04:00 GMT' })],
  ],
  [3, [said, seen], [said, withHeaders(5 * minute, { 'last-modified': 'Sun, 01 Jun 2031 05:00:00 GMT' })]],
  // What a stale answer says of itself.
  [3, [said, seen], [said, weather(80 * minute, 2, 7, { headers: { 'cache-status': hitFor(600) } })]],
  [4, [said, weather(16 * minute, 2, 7)], [said, weather(-1, 2, 7)]],
  [4, [said, seen], [said, withHeaders(1, { 'cache-control': 'private, max-age=99' })]],
  [
    5,
    [counted(1, 2), counted(2, 1)],
    [counted(1, 2), counted(2, 1, { body: '{"results":[],"total":8,"type":"division"}' })],
  ],
  [
    5,
    [counted(1, 2), unchanged(2, 2)],
    [counted(1, 2), counted(2, 1, { status: 304, body: '', ifNoneMatch: 'W/"others"' })],
  ],
  [7, [...spent, unchanged(4, 0), exhausted(5)], [counted(1, 2), unchanged(2, 2), exhausted(3)]],
  [
    6,
    [away(0), ...spent, unchanged(4, 0), exhausted(5)],
    [away(0), ...spent, unchanged(4, 0), counted(5, 0)],
  ],
  [6, [away(0), ...spent, exhausted(4)], [away(0), ...spent, counted(4, 0), exhausted(5)]],
  [
    // What a gateway admitted is missing where it lost Redis before it could report that again.
    6,
    [...spent, ...emptied(4), cutOff(5_000), ...spentAgain(60_000)],
    [...spent, ...emptied(4), cutOff(20_000), ...spentAgain(60_000)],
  ],
  [
    // Not what was admitted before that.
    6,
    [...spent, ...emptied(4), ...spentAgain(2_200), cutOff(5_000, [0, 1])],
    [...spent, ...emptied(4), ...spentAgain(4_000), cutOff(5_000, [0, 1])],
  ],
  [
    // Or where the clock passed the time for which others wait while it was still connecting: the machine has little time for that.
    6,
    [...spent, ...emptied(4), ...spentAgain(2_200)],
    [...spent, ...emptied(4), ...spentAgain(2_600)],
  ],
  [7, [counted(1, 2), counted(2, 1)], [counted(1, 2), counted(2, 2)]],
  [7, [counted(1, 2), counted(2, 1)], [counted(1, 2), exhausted(2)]],
  [
    8,
    [away(0), counted(1, 2), back(2), phase(3, 'judged'), counted(4, 1), counted(5, 0, { gateway: 1 })],
    [away(0), counted(1, 2), back(2), phase(3, 'judged'), counted(4, 2), counted(5, 1, { gateway: 1 })],
  ],
  [
    8,
    [phase(3, 'judged'), counted(4, 2), counted(5, 1, { gateway: 1 })],
    [phase(3, 'judged'), counted(4, 2), counted(5, 2, { gateway: 1 })],
  ],
  [
    9,
    [counted(1, 2)],
    [counted(1, 2, { headers: { 'x-ratelimit-reset': String(midnight / 1_000 + 3_600) } })],
  ],
  [2, [revoked(1), refused(5_000)], [revoked(1), refused(5_000, 'key_expired')]],
  [10, [revoked(1), counted(900, 2), refused(5_000)], [revoked(1), counted(5_000, 2)]],
  [
    10,
    [away(0), revoked(1), counted(5_000, 2), back(6_000), refused(20_000)],
    [away(0), revoked(1), back(6_000), counted(20_000, 2)],
  ],
  [
    10,
    [
      ...[rotated(1, 9_000), counted(5_000, 2, { former: true, headers: endsAt(9_000) })],
      ...[refusedFormer(20_000), counted(20_001, 1)],
    ],
    [rotated(1, 9_000), counted(20_000, 2, { former: true })],
  ],
  [
    11,
    [rotated(1, 9_000), refusedFormer(20_000), counted(20_001, 2)],
    [rotated(1, 9_000), refusedFormer(5_000)],
  ],
  [11, [tier(1), counted(5_000, 4, { headers: { 'x-ratelimit-limit': '5' } })], [tier(1), counted(5_000, 2)]],
  [11, [counted(5_000, 2)], [refused(5_000)]],
  [12, [provider(10_000, 7, 9)], [provider(10_000, 7, 6), provider(30_000, 8, 6)]],
  [
    13,
    [
      ...[said, phase(1, 'judged'), ofPlenty(2, 2)],
      ofPlenty(3, 1, {
        'cache-status': `abohawa; fwd=stale; ttl=-9; detail=memory${cacheOf()}`,
        'cache-control': 'private, max-age=0',
      }),
      ready(4, 'counted in the store'),
    ],
    [
      said,
      phase(1, 'judged'),
      ofPlenty(2, 2, { 'cache-status': `abohawa; fwd=stale; ttl=-60; detail=memory${cacheOf()}` }),
    ],
  ],
  [
    13,
    [phase(1, 'judged'), counted(2, 2, { key: 'plenty' }), ready(3, 'counted in the store')],
    [phase(1, 'judged'), counted(2, 2, { key: 'plenty' }), ready(3, 'reconciling')],
  ],
  [
    14,
    [said, seen, provider(minute, 8), weather(2 * minute, 1, 8)],
    [said, provider(minute, 8), weather(2 * minute, 2, 8), weather(3 * minute, 1, 7)],
  ],
  // What gateways share does not go back either.
  [14, [...twoSaid, stored(2, 7), sharedAt(3, 7)], [...twoSaid, stored(2, 8), sharedAt(3, 7)]],
  [
    15,
    [said, seen, purged(2), provider(minute, 8), weather(2 * minute, 1, 8)],
    [said, purged(1), weather(2 * minute, 2, 7)],
  ],
  [
    16,
    [renewed(0, 'certificate', 'A'), counted(1, 2, { certificate: 'A' })],
    [renewed(0, 'certificate', 'A'), renewed(1, 'certificate', 'B'), counted(2, 2, { certificate: 'A' })],
  ],
  [
    16,
    [said, renewed(1, 'name', 'Dhaka 2'), named(2, 'Dhaka 2')],
    [said, named(1, 'Dhaka 2'), renewed(2, 'name', 'Dhaka 3'), named(3, 'Dhaka 2')],
  ],
  [
    17,
    [paced(1, 2), paced(2, 1), paced(3), paced(1_000, 0)],
    [paced(1, 2), paced(2, 1), paced(3), paced(4, 0)],
  ],
  [18, [ofFallback, weatherOf(1, 'fallback-1')], [ofFallback, weatherOf(1, 'primary')]],
  [
    18,
    [ofFallback, weatherOf(1, 'fallback-1')],
    [failed(1, 2, 'provider_limited', { path: '/weather/district/3026' })],
  ],
  // Of a list each place takes a unit.
  [7, [said, listed(1, 1, 7), counted(2, 0)], [said, listed(1, 1, 7), counted(2, 1)]],
  [7, [counted(1, 2), counted(2, 1), listRefused(3, 1)], [said, counted(1, 2), listRefused(2, 2)]],
  [2, [said, late('miss')], [said, late('hit')]],
  [3, [said, listed(1, 1, 7)], [said, listed(1, 1, 8)]],
  // What was purged ends where it is read, which may be a moment before the last place of the list has come.
  [3, [said, purged(1, false), staleList], [said, staleList], byAge],
  // A purge covers a load that began before it, even if the provider answers later; a second answer is of a load after it.
  // Beside a gateway whose clock is ahead, who waited for its load says its own instant.
  [
    3,
    [{ ...life(0, 'started', 1), skewMs: minute } as At, said, seen, modifiedAt(2_000)],
    [said, seen, modifiedAt(2_000)],
  ],
  [3, purgedLoad, purgedLoad.toSpliced(2, 0, provider(900, 8)), byAge],
  [19, [said, listed(1, 1, 7)], [said, listed(1, 1, 7, { 'x-ratelimit-cost': '1' })]],
  [19, [said, listed(1, 1, 7), listRefused(2, 1)], [said, counted(1, 2), listRefused(2, 2)]],
  [19, [said, listed(1, 1, 7)], [counted(1, 2, { headers: { 'x-ratelimit-cost': '1' } })]],
  [19, [said, listed(1, 1, 7)], [refused(1, 'invalid_key', { 'x-ratelimit-cost': '1' })]],
  // Although it failed, its key was checked.
  [19, [failing, listFailed(1, 1)], [failing, listFailed(1, 1, { 'x-ratelimit-cost': '' })]],
]

t.strictSame(
  promiseNumbers.filter(number => !cases.some(([promise]) => promise === number)),
  [],
  'every promise has a case',
)

testCases(cases)
