// Test helper: read-through caches of texts on a real store, with everything that they report.

import type { Test } from 'tap'
import type { CacheParts, Subject } from '../../src/cache/cache-parts.ts'
import { createDemand } from '../../src/cache/demand.ts'
import { createFailures, createUncached } from '../../src/cache/failures.ts'
import { createFleetSingleFlight } from '../../src/cache/fleet-single-flight.ts'
import { createFreshness, type Entry, type RunOptions } from '../../src/cache/freshness.ts'
import { createPurges } from '../../src/cache/purges.ts'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { createMemoryTier, createSharedTier } from '../../src/cache/tiers.ts'
import type { ByteStore, LeaseStore } from '../../src/stores/store.ts'
import type { FreshnessOptions } from '../../src/weather/horizon.ts'
import type { ManualClock } from '../support/manual-clock.ts'

export type Parts = CacheParts<Subject, string>

/** Fresh for a second and usable for ten more, unless other options are given. */
export const policyOf = (given: Partial<FreshnessOptions & RunOptions> = {}) =>
  createFreshness(
    {
      ...{ freshForMs: 1_000, freshSpread: 0, freshForAtMostMs: 1_000, refreshAheadForMs: 0 },
      ...{ staleForMs: 10_000, settleForMs: 0, spreadOverMs: 0 },
      ...given,
    },
    () => 1,
  )

export const textEntry = (given: Partial<Entry<string>> = {}): Entry<string> => ({
  value: 'x',
  fetchedAt: 0,
  bytes: 1,
  jitter: 0,
  generation: 0,
  run: null,
  ...given,
})

const entryIn = (bytes: Buffer) => JSON.parse(bytes.toString()) as Entry<string>

/** The parts of one instance. `failed` collects every failure that is no cold load; `decoded` what was decoded. */
export const partsOn = (
  t: Pick<Test, 'teardown'>,
  { store, clock }: { store: ByteStore & LeaseStore; clock: ManualClock },
  given: Pick<Parts, 'load'> & Partial<Parts>,
  leaseForMs = 1_000,
) => {
  const failed: unknown[] = []
  const decoded: string[] = []
  const expedited: (string | undefined)[] = []
  const policy = given.policy ?? policyOf()
  const codec = {
    maxBytes: 10_000,
    encode: (entry: Entry<string>) => Buffer.from(JSON.stringify(entry)),
    metadata: entryIn,
    decode: (bytes: Buffer) => {
      decoded.push(entryIn(bytes).value)
      return entryIn(bytes)
    },
  }
  /** What each process has of its own. */
  const ofProcess = () => {
    const fleet = createFleetSingleFlight({ store, leaseForMs }, error => failed.push(error))
    t.teardown(fleet.close)
    const failures = createFailures({ retryAfterMs: 500, retryAfterAtMostMs: 2_000 }, clock, () => 0)
    return { memory: createMemoryTier<string>(10_000), failures, fleet }
  }
  const parts: Parts = {
    ...ofProcess(),
    keyOf: ({ id }) => id,
    expedite: ({ id }, consumer) => expedited.push(consumer ?? id),
    throttled: () => undefined,
    consumerOf: () => undefined,
    shared: createSharedTier({ name: 'embedded', store, longestUseMs: () => policy.longestUseMs }, codec, {
      onSharedTierFailure: (_step, error) => failed.push(error),
      onEntryRefused: reason => failed.push(reason),
    }),
    policy,
    purges: createPurges(),
    uncached: createUncached(),
    demand: createDemand(),
    waitForMs: 60_000,
    clock,
    observer: {
      ...silentObserver,
      onLoadFailure: ({ error, purpose }) => purpose !== 'cold' && failed.push(error),
    },
    ...given,
  }
  return { parts, ofProcess, failed, decoded, expedited }
}
