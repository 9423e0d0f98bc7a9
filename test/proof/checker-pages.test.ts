// Without it the checker could miss what the status page or `/key` hides, or demand what they need not say.

import type { Answer } from '../../proof/history.ts'
import type { Step } from '../../proof/steps.ts'
import { type Case, testCases } from './cases.ts'
import { failed, failing } from './made-up-errors.ts'
import { type At, counted, type Given, noon, provider, weather } from './made-up-history.ts'
import { keyOnNextDay, statusPage } from './made-up-pages.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const taken = (afterMs: number, step: Step): At => ({ afterMs, kind: 'step', step })

const cells = ['23.7/90.4', '22.3/91.8', '24.9/91.87']
/** One cell after the other can't be loaded. */
const failures = (afterMs: number, given: Given = {}, code = 'provider_failing', of = cells): At[] => [
  { ...failing, afterMs } as At,
  ...of.map((cell, i) => failed(afterMs + i, 2 - i, code, { path: `/weather/coords/${cell}`, ...given })),
]
const told = (afterMs: number): At => statusPage(afterMs, { outages: ['weather'], availability: 0 })
const hidden = (afterMs: number): At => statusPage(afterMs, { availability: 0 })
const afterSuccess = [provider(0, 7), taken(1_000, { do: 'move', ms: 1 }), ...failures(20_000)]

/** Histories in which there need be no outage of weather, or none any more. */
const without: readonly At[][] = [
  [...failures(1), statusPage(4_000)],
  [...failures(1), provider(5_000, 7), hidden(10_000)],
  [...failures(1), hidden(16 * minute)],
  [...failures(1, {}, 'provider_failing', [...cells.slice(1), '22.3/91.8']), hidden(10_000)],
  [...failures(1, {}, 'provider_limited'), hidden(10_000)],
  [...failures(1, { gateway: 1 }), statusPage(10_000)],
  // A success may be on its way from before.
  [provider(0, 7), ...failures(400), hidden(10_000)],
  [
    taken(0, { do: 'provider-link', id: 'f1', fault: { kind: 'delay', ms: 300 } }),
    ...failures(1),
    hidden(10_000),
  ],
]

const began = noon - 6 * hour
const run: At = { afterMs: 0, kind: 'run', initialisedAt: began }
const withRun = (afterMs: number): At => statusPage(afterMs, { run: new Date(began).toISOString() })

const unchecked: Given = {
  headers: { 'x-ratelimit-limit': '0', 'ratelimit-policy': '', ratelimit: '', 'retry-after': '10' },
}
const refused = failed(1, 0, 'store_unavailable', unchecked)
const storeAway = [taken(0, { do: 'store', id: 'f1', fault: 'frozen' }), refused]
/** Each gateway has its store back at once. */
const storeCutOff = [
  taken(0, { do: 'link', id: 'f1', gateways: [0, 1, 2], fault: { kind: 'reset' } }),
  refused,
  taken(2, { do: 'move', ms: minute }),
]
const storeSlow = [
  taken(0, { do: 'link', id: 'f1', gateways: [0], fault: { kind: 'trickle', bytes: 9, everyMs: 9 } }),
  refused,
]

// A fallback would have weather, and may have no runs.
const alone = { hasFallback: false }
const cutOffMeanwhile: At[] = [
  taken(1, { do: 'link', id: 'f1', gateways: [0], fault: { kind: 'refuse' } }),
  ...[counted(2, 2), counted(3, 1)],
  taken(4, { do: 'heal', id: 'f1' }),
]
const seen = [provider(0, 7), weather(1, 2, 7), weather(2, 1, 7)]
const until = noon + 2 * day
const rotated: At = { afterMs: 1, kind: 'key', key: 'one', what: 'rotated', until }
const ofKey = keyOnNextDay(13 * hour, 2) as At & Answer
const { 'keep-alive': _, ...usual } = ofKey.headers
const headOfKey = (former?: true): At =>
  ({
    ...ofKey,
    ...{ method: 'HEAD', former, body: '' },
    headers: {
      ...usual,
      ...{ connection: 'close', 'x-request-id': '9'.repeat(20) },
      'content-length': String(Number(ofKey.headers['content-length']) + 22),
      'x-key-expires': new Date(until).toISOString(),
    },
  }) as At

const cases: readonly Case[] = [
  [2, [...failures(1), told(10_000)], [...failures(1), hidden(10_000)], alone],
  [2, [...afterSuccess, told(40_000)], [...afterSuccess, hidden(40_000)], alone],
  ...without.map((kept): Case => [2, kept, [...failures(1), hidden(10_000)], alone]),
  [2, [...storeAway, statusPage(minute, { outages: ['quotas'] })], [...storeAway, statusPage(minute)]],
  [2, [...storeCutOff, statusPage(minute)], [...storeAway, statusPage(minute)]],
  [2, [...storeSlow, statusPage(minute)], [...storeAway, statusPage(minute)]],
  [2, [run, withRun(1_000), withRun(20_000)], [run, withRun(1_000), statusPage(20_000)], alone],
  [
    2,
    [counted(1, 2), counted(2, 1), keyOnNextDay(13 * hour, 2)],
    [counted(1, 2), counted(2, 1), keyOnNextDay(13 * hour, 1)],
  ],
  // What nobody knows to be counted may be counted twice.
  [
    2,
    [...cutOffMeanwhile, keyOnNextDay(13 * hour, 3)],
    [counted(2, 2), counted(3, 1), keyOnNextDay(13 * hour, 3)],
  ],
  // The former secret ends, and the other does not.
  [5, [...seen, rotated, ofKey, headOfKey(true)], [...seen, ofKey, headOfKey()]],
]

testCases(cases)
