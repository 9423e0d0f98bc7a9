// Without it the checker could miss an error that nothing caused, a 304 that never comes, or weather that is fresh after a purge.

import type { Step } from '../../proof/steps.ts'
import { type Case, testCases } from './cases.ts'
import { beyondBounds, exhausted, failed, failing } from './made-up-errors.ts'
import {
  type At,
  cacheOf,
  counted,
  type Given,
  life,
  noon,
  provider,
  schedule,
  unchanged,
  weather,
} from './made-up-history.ts'

const taken = (afterMs: number, step: Step): At => ({ afterMs, kind: 'step', step })
const away = (afterMs: number): At => taken(afterMs, { do: 'store', id: 'f1', fault: 'frozen' })
const unchecked: Given = {
  headers: { 'x-ratelimit-limit': '0', 'ratelimit-policy': '', ratelimit: '', 'retry-after': '10' },
}
const storeUnavailable = failed(1, 0, 'store_unavailable', unchecked)
const noWeather = failed(1, 2, 'provider_failing', { path: '/weather/district/3026' })

const notStarted = { ...life(0, 'not started', 1), run: 1, skewMs: 4_000 } as At
const startedBehind = { ...life(1, 'started', 1), run: 1, skewMs: -49_000 } as At
const behind = counted(2, 2, {
  ...{ gateway: 1, run: 1 },
  headers: { date: new Date(noon + 2 - 49_000).toUTCString() },
})

const [said, softly] = [provider(0, 7), { afterMs: 1, kind: 'purged', gateway: 0, hard: false } as At]
const twice = [said, ...[1, 2].map(nth => weather(nth, 3 - nth, 7, { key: 'narrow' }))]
const stale = (afterMs: number, how: string): At =>
  weather(afterMs, 2, 7, {
    headers: {
      'cache-status': `abohawa; ${how}; detail=memory${cacheOf()}`,
      'cache-control': 'private, max-age=0',
    },
  })
const left = stale(700_000, 'hit; ttl=-20')
const moved = taken(1_290_000, { do: 'move', ms: 1 })
const [saidAgain, old] = [provider(1_300_000, 7), stale(1_300_001, 'fwd=stale; ttl=-620')]
const tag = 'W/"places-of-the-division"'

const unlimited = {
  settings: { ...schedule.settings, 'provider.budget.perMinute': '', 'cache.freshness': 'age' },
}

const cases: readonly Case[] = [
  [5, [counted(1, 2), unchanged(2, 2)], [counted(1, 2), counted(2, 1, { ifNoneMatch: tag })]],
  [
    2,
    [counted(1, 2, { method: 'HEAD', body: '' })],
    [counted(1, 2, { method: 'HEAD', body: '', path: '/locations/planet/30', headers: { link: '' } })],
  ],
  // Its clock is that of the start that came about.
  [2, [notStarted, startedBehind, behind], [notStarted, behind]],
  [2, [away(0), storeUnavailable], [storeUnavailable]],
  [2, [failing, noWeather], [noWeather], { hasFallback: false }],
  // What takes no unit counts none.
  [
    7,
    [...twice, beyondBounds(3, 'narrow', 'weather', 1)],
    [...twice, beyondBounds(3, 'narrow', 'weather', 0)],
  ],
  [
    7,
    [counted(1, 2), counted(2, 1), away(3), counted(4, 0), exhausted(5)],
    [counted(1, 2), away(3), exhausted(4)],
  ],
  [3, [said, softly, stale(20_000, 'fwd=stale; ttl=0')], [said, softly, weather(20_000, 2, 7)], unlimited],
  [2, [said, failing, left], [said, left], unlimited],
  // It may be of the first of two loads with the same values.
  [3, [said, failing, moved, saidAgain, old], [failing, moved, saidAgain, old], unlimited],
]

testCases(cases)
