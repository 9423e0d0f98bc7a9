// What is promised of every history, as numbered sentences. The checker has one rule for each; docs/reliability.md lists them
// with the number of histories that exercised each.

export const promises = {
  1: 'Every request has an answer, unless its gateway died or stopped meanwhile.',
  2: 'Every answer is one of the contract: its status, each field of its body, lengths and order of lists, all headers; none is an unforeseen failure.',
  3: 'Every value of weather was said by the provider for that cell and time, all of an answer in one body, within the promised age.',
  4: 'Weather is for the quarter-hour, the hour and the day of the request, and no answer says that it stays right for longer.',
  5: 'A tag names one body, and 304 comes only for a tag of the same path.',
  6: 'No key is admitted more often than its limit, but by what an instance could not report.',
  7: 'While Redis serves, each admitted request takes one unit: no unit is granted twice, and 429 comes at the limit only.',
  8: 'After an outage every gateway has the same count, equal to what was admitted.',
  9: 'The quota ends at the next midnight in the time zone of the keys, by the clock of the store.',
  10: 'A key that is revoked, expired or replaced is refused within three seconds, or of the end of an outage of Redis.',
  11: 'An issued key is accepted until it expires, a new secret and the former one until its end, and a new tier or limit in force, within the same time.',
  12: 'While clocks agree and Redis keeps its data, the budget of no window is exceeded: minute, hour and UTC day.',
  13: 'After all faults every gateway is ready, answers everything, and its weather is fresh.',
  14: 'A gateway never goes back to older weather of a cell, nor does what gateways share in Redis.',
  15: 'After a hard purge no weather from before it is served.',
  16: 'A changed catalogue and a renewed certificate are in force at every gateway once it has read them.',
  17: 'A key with a limit by the second is admitted as often as its bucket holds and refills, and a tenth of the rate more.',
  18: 'With a fallback, an answer names the upstream that said its weather, and no fault or limit of the first one refuses weather.',
} as const

export type PromiseNumber = keyof typeof promises

/** The tests that show each promise beside the histories: files of test/, without `.test.ts`. */
export const shownBy: Readonly<Record<PromiseNumber, readonly string[]>> = {
  1: ['journeys/fleet', 'journeys/pipelines', 'journeys/processes'],
  2: ['api/error-codes', 'journeys/provider-faults', 'journeys/malformed'],
  3: ['provider/open-meteo/decode', 'cache/entry-codec', 'journeys/tampered-store'],
  4: ['journeys/clock', 'journeys/weather'],
  5: ['journeys/representation'],
  6: ['keys/metering', 'journeys/redis-outages', 'journeys/metering'],
  7: ['keys/meter', 'journeys/metering'],
  8: ['keys/lost-counts', 'journeys/redis-outages'],
  9: ['keys/metering', 'journeys/clock'],
  10: ['journeys/key-changes', 'keys/key-directory'],
  11: ['journeys/key-admin', 'journeys/live-settings'],
  12: ['provider/budget', 'journeys/budget-over-windows'],
  13: ['journeys/outage', 'journeys/redis-outages', 'journeys/backoff'],
  14: ['cache/read-through', 'cache/overtaken-load'],
  15: ['cache/purges', 'journeys/cache-admin'],
  16: ['catalogue/live-catalogue', 'journeys/transport'],
  17: ['keys/rates', 'journeys/rates'],
  18: ['journeys/failover', 'journeys/failover-day', 'provider/failover'],
}

export const promiseNumbers = Object.keys(promises).map(Number) as PromiseNumber[]

/** A promise that a history broke. */
export type Violation = {
  readonly promise: PromiseNumber
  /** What was seen, in one sentence. */
  readonly detail: string
  /** The place of the event in the history. */
  readonly seq: number
}

/** How often a history exercised each promise; without a promise for none. */
export type Exercised = Partial<Record<PromiseNumber, number>>

export type Verdict = { readonly violations: readonly Violation[]; readonly exercised: Exercised }
