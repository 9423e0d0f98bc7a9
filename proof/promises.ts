// What is promised of every history, as numbered sentences. The checker has one rule for each; docs/reliability.md lists them
// with the number of histories that exercised each.

export const promises = {
  1: 'Every request has an answer, unless its gateway stopped meanwhile.',
  2: 'Every answer follows the contract: status, body, lists and headers; none is an unforeseen failure.',
  3: 'Weather comes from one provider body for that cell and time, within the promised age.',
  4: 'Weather is for the quarter-hour, hour and day of the request, and valid no longer.',
  5: 'A tag names one body, and 304 comes only for a tag of the same path.',
  6: 'No key exceeds its limit, except by what an instance could not report.',
  7: 'While Redis serves, each request takes its units once, and 429 comes only at the limit.',
  8: 'After an outage every gateway has the same count, equal to what was admitted.',
  9: 'The quota ends at midnight in the time zone of the keys, by the store’s clock.',
  10: 'A revoked, expired or replaced key is refused within three seconds of the change or of a Redis outage’s end.',
  11: 'A new key, secret, tier or limit is in force within the same time; a replaced secret works until its end.',
  12: 'While clocks agree and Redis keeps its data, no budget window is exceeded.',
  13: 'After all faults every gateway is ready, answers everything, and its weather is fresh.',
  14: 'Neither a gateway nor the shared tier goes back to older weather of a cell.',
  15: 'After a hard purge no weather from before it is served.',
  16: 'A changed catalogue or certificate is in force at a gateway once it has read it.',
  17: 'A key with a limit by the second exceeds its bucket by at most a tenth.',
  18: 'With a fallback, an answer names its upstream, and no fault of the primary refuses weather.',
  19: 'A request for several places takes a unit for each or none, and says how many.',
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
  19: ['journeys/weather-of-places', 'keys/meter'],
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
